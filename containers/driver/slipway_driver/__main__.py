import sys

from slipway_driver.main import Container

if __name__ == "__main__":
    sys.exit(Container().run())
