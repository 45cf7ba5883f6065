import sys

from slipway_driver.container import main

if __name__ == "__main__":
    sys.exit(main())
