"""`python -m tocsin.cli`, for where no script was installed."""

from tocsin.cli import main

main()
