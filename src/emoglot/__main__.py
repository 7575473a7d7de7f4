"""`python -m emoglot`."""

from emoglot.cli import main

main()
