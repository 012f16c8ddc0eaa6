"""When a recurring reminder is due: cron with an explicit daylight-saving policy, and intervals."""
