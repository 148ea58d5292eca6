"""A function behind HTTP: the arguments are posted as JSON, the status decides."""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WEATHER = {"Beijing": "clear, 22 degrees", "Shanghai": "cloudy, 25 degrees"}


class Function(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        arguments = json.loads(self.rfile.read(length))
        weather = WEATHER.get(arguments["city"])
        if weather is None:  # a business failure: the model reads the text
            self.answer(404, f"no weather is known for {arguments['city']}")
        else:
            self.answer(200, weather)

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Function).serve_forever()
