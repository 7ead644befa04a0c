#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""server.py PORT - an HTTP server that serves its own profile

    go tool pprof http://localhost:PORT/debug/pprof/profile?seconds=5

The profile has the functions of the interpreter and of libraries, not those of Python.
"""
import ctypes
import os
import sys
import tempfile
import threading
import time
import urllib.parse
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

pprof = ctypes.CDLL("libprofil-pprof.so.1", use_errno=True)
pprof.profil_pprof_start.restype = ctypes.c_void_p
pprof.profil_pprof_write.argtypes = [ctypes.c_void_p, ctypes.c_int]
pprof.profil_pprof_stop.argtypes = [ctypes.c_void_p]


def check(succeeded):
    if not succeeded:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def make_profile(seconds):
    """Returns a profile of the next seconds. This is all that a server needs for it."""
    profile = pprof.profil_pprof_start(1000)
    check(profile)
    with tempfile.TemporaryFile() as file:
        try:
            time.sleep(seconds)
            check(pprof.profil_pprof_write(profile, file.fileno()) == 0)
        finally:
            pprof.profil_pprof_stop(profile)
        file.seek(0)
        return file.read()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        if url.path != "/debug/pprof/profile":
            self.send_error(404)
            return
        query = urllib.parse.parse_qs(url.query)
        try:
            profile = make_profile(float(query.get("seconds", ["30"])[0]))
        except OSError as error:
            self.send_error(503, "profil: " + error.strerror)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.end_headers()
        self.wfile.write(profile)


def work():
    """The work of the server: nearly all of the time in crc32() of zlib."""
    block = bytes(1 << 20)
    while True:
        zlib.crc32(block)


threading.Thread(target=work, daemon=True).start()
ThreadingHTTPServer(("localhost", int(sys.argv[1])), Handler).serve_forever()
