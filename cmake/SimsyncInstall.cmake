# Written with the package layout; see the install section of README.md.
