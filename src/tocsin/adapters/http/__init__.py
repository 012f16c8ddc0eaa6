"""The worker's read-only endpoint, on aiohttp in a thread of its own.

GET  /healthz       the loop makes progress, or why not (503)
     /readyz        every owned partition is restored and fires (503 until then)
     /metrics       Prometheus text
     /v1/status     this worker and its partitions
     /v1/reminders  ?actor=A[&after=NAME][&limit=N]: {"reminders": [...], "next": NAME or null}
                    ?actor=A&name=NAME: one reminder with payload and headers; 404 when not armed
     /v1/upcoming   ?[limit=N]: {"reminders": [...]}, what is due next in this worker's partitions

Actors and names are query parameters, never path segments: clients resolve `..` and `%2e%2e` in
paths before they send them. Errors are application/problem+json; 421: another worker owns the
actor's partition, tocsin.status says which; 503: ask again in a moment.
"""
