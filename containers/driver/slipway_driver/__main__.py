import sys

from slipway_driver.main import main

if __name__ == "__main__":
    sys.exit(main())
