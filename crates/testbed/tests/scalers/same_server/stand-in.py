"""A server for a source that cannot be run here: it answers what `routes.json` says.

A key is a method, a path and query parameters that a request must have at least (`GET /jobs?state=queued`); of several keys, that with
most parameters is taken. Of a list of answers, the first is taken whose words in `posted` are all in the body of the request. `logins`
are headers `Authorization` of which each request must have one.
"""

import http.server
import json
import sys
from urllib.parse import parse_qsl, urlsplit


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def answer(self):
        body = self.body().decode()
        asked = urlsplit(self.path)
        given = parse_qsl(asked.query, keep_blank_values=True)
        with open("routes.json", encoding="utf-8") as file:
            routes = json.load(file)
        logins = routes.pop("logins", None)
        if logins is not None and self.headers.get("Authorization") not in logins:
            return self.respond(401, {"message": "Bad credentials"})
        fitting = []
        for name, answers in routes.items():
            method, target = name.split(" ", 1)
            wanted = urlsplit(target)
            needed = parse_qsl(wanted.query, keep_blank_values=True)
            if (method, wanted.path) == (self.command, asked.path) and all(pair in given for pair in needed):
                fitting.append((len(needed), name, answers))
        if not fitting:
            return self.respond(404, {"message": f"Not Found: {self.command} {self.path}"})
        answers = max(fitting)[2]
        for answer in answers if isinstance(answers, list) else [answers]:
            if all(word in body for word in answer.get("posted", [])):
                return self.respond(answer.get("status", 200), answer.get("body", ""), answer.get("headers"))
        return self.respond(400, {"message": f"no answer to {body}"})

    do_GET = do_HEAD = do_POST = answer

    def respond(self, status, body, headers=None):
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
