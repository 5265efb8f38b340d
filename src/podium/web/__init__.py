"""The page, the HTTP API and the extender: fronts that ask the engine over HTTP. Needs the extra `web`."""
