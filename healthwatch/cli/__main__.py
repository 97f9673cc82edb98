from healthwatch.cli import main

main()
