"""The pages of `report` in a browser: Chromium without a window, by `make test-browser`."""
