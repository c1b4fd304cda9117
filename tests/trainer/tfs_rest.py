"""TensorFlow Serving's REST protocol: predict, metadata and status by HTTP."""

import http.server
import json
import re

from google.protobuf import json_format

from tests.trainer import tfs_json
from tests.trainer.tfs_model import BadRequestError, NotServedError


class RestHandler(http.server.BaseHTTPRequestHandler):
    """REST: predict, metadata and status of `model`, an attribute of the subclass that a server makes."""

    model = None
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else an answer waits 40 ms for the client's acknowledgement of its headers

    _GET = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?(/metadata)?", re.IGNORECASE)
    _POST = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?:predict", re.IGNORECASE)

    def do_GET(self):  # noqa: N802
        self._answer(self._GET, self._look_up)

    def do_POST(self):  # noqa: N802
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(self._POST, lambda name, number: self._predict(name, number, body))

    def _look_up(self, name, number, metadata):
        response = self.model.metadata(name, number) if metadata else self.model.status(name, number)
        return json_format.MessageToDict(
            response, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )

    def _predict(self, name, number, body):
        version = self.model.version(name, number)
        signature_name, feeds, rows = tfs_json.parse_predict(body, version.signature)
        return tfs_json.format_predict(version.run(signature_name, feeds), rows)

    def _answer(self, pattern, answer):
        match = pattern.fullmatch(self.path)
        try:
            if not match:
                raise BadRequestError(f"Malformed request: {self.command} {self.path}")
            name, number, *rest = match.groups()
            code, content = 200, answer(name, number and int(number), *rest)
        except (BadRequestError, NotServedError) as error:
            code, content = (400 if isinstance(error, BadRequestError) else 404), {"error": str(error)}
        except Exception as error:
            code, content = 500, {"error": f"{type(error).__name__}: {error}"}
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class RestServer(http.server.ThreadingHTTPServer):
    """A thread for each connection."""

    request_queue_size = 128  # each request of urllib is a connection of its own
