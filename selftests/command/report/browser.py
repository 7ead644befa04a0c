# SPDX-License-Identifier: GPL-2.0
#
# browser.py DIR PAGE.html <CODE
#
# Opens a page in chromium, without a window, and runs Python code that uses it as a person would:
# with the mouse and the keyboard. The functions below are for CODE. Fails if the page requests
# anything, reports an error, or tries what its policy forbids. In the environment, PROFIL is the
# command; DATA is the recording of the page, or A and B those of a page of profil diff.
#
# chromium already runs, with --remote-debugging-pipe, and shows several pages, one after the other.
# It reads from the FIFO DIR/to and writes to DIR/from.

import csv
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

KEYS = {"Enter": "\r", " ": " "}


class Browser:
    """chromium, and messages of its DevTools protocol through the two FIFOs"""

    def __init__(self, directory):
        self.output = self.open(directory + "/to")
        self.input = os.open(directory + "/from", os.O_RDONLY)
        self.number = 0
        self.session = None
        self.rest = b""
        self.events = []
        self.target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=self.target,
                                 flatten=True)["sessionId"]

    @staticmethod
    def open(fifo):
        """Opens it for writing, when chromium has started."""
        end = time.monotonic() + 60
        while True:
            try:
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if time.monotonic() > end:
                    sys.exit("chromium does not run: %s" % error)
            time.sleep(0.1)

    def receive(self):
        while b"\0" not in self.rest:
            data = os.read(self.input, 1 << 16)
            if not data:
                sys.exit("chromium has ended")
            self.rest += data
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def receive_event(self):
        message = self.receive()
        if "method" in message and message.get("sessionId") == self.session:
            self.events.append(message)
        return message

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        reply = {}
        while reply.get("id") != self.number:
            reply = self.receive_event()
        if "error" in reply:
            sys.exit("%s: %s" % (method, reply["error"]))
        return reply["result"]

    def wait(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.receive_event()

    def end(self):
        """Closes the page, and reads the last message about it, so that the next page gets none."""
        self.session = None
        self.call("Target.closeTarget", targetId=self.target)
        self.wait("Target.detachedFromTarget")


def js(expression):
    """Returns the value of a JavaScript expression."""
    result = browser.call("Runtime.evaluate", expression=expression, returnByValue=True)
    if "exceptionDetails" in result:
        sys.exit(expression + ": " + str(result["exceptionDetails"]))
    return result["result"].get("value")


def get(selector, name):
    """Returns a property of an element, or the value of a method."""
    return js("document.querySelector(%s).%s" % (json.dumps(selector), name))


def text(selector):
    return get(selector, "textContent")


def each(selector, name):
    """Returns this property of each element."""
    return js("[...document.querySelectorAll(%s)].map((e) => e.%s)" % (json.dumps(selector), name))


def texts(selector):
    return each(selector, "textContent")


def value(selector):
    return get(selector, "value")


def focus(selector, *keys):
    """Moves the focus to an element, and presses the keys there."""
    get(selector, "focus()")
    key(*keys)


def active():
    return js("document.activeElement.id")


def cells(rows):
    """Returns the text of the cells, by row."""
    return js("[...document.querySelectorAll(%s)].map((row) => "
              "[...row.cells].map((cell) => cell.textContent))" % json.dumps(rows))


def table():
    return cells("#body tr")


def lines():
    return cells("#lines tr")


def selection():
    """Returns the options for the selection in the timeline."""
    return ["--from", value("#from"), "--to", value("#to")]


def box(selector):
    """Returns the place of an element that can be seen: x, y, width, height."""
    return js("(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'nearest'});"
              "const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
              % json.dumps(selector))


def mouse(kind, x, y, buttons):
    browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, buttons=buttons, clickCount=1,
                 button="none" if kind == "mouseMoved" and not buttons else "left")


def drag(selector, start, end, line=0.5):
    """Presses the button at a fraction of the width of the element, and releases it at another."""
    x, y, width, height = box(selector)
    y += height * line
    mouse("mouseMoved", x + width * start, y, 0)
    mouse("mousePressed", x + width * start, y, 1)
    if end != start:
        mouse("mouseMoved", x + width * (start + end) / 2, y, 1)
        mouse("mouseMoved", x + width * end, y, 1)
    mouse("mouseReleased", x + width * end, y, 0)


def point(selector, place):
    x, y, width, height = box(selector)
    mouse("mouseMoved", x + width * place, y + height / 2, 0)


def click(selector):
    drag(selector, 0.5, 0.5)


def key(*names, shift=False):
    for name, kind in itertools.product(names, ("keyDown", "keyUp")):
        browser.call("Input.dispatchKeyEvent", type=kind, key=name, modifiers=8 if shift else 0,
                     **({"text": KEYS[name]} if kind == "keyDown" and name in KEYS else {}),
                     code=name, windowsVirtualKeyCode={"Tab": 9, "Enter": 13}.get(name, 0))


def write(selector, new, *keys):
    """Replaces the text of an input element, and presses the keys there."""
    click(selector)
    get(selector, "select()")
    browser.call("Input.insertText", text=new)
    key(*keys)


def drawn():
    """Waits until the page has been drawn."""
    browser.call("Runtime.evaluate", awaitPromise=True, expression="new Promise((done) => "
                 "requestAnimationFrame(() => requestAnimationFrame(done)))")


def size(width, height):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)
    drawn()


def scheme(name):
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": name}])


def pixels():
    """Returns the picture of the timeline."""
    return js("document.querySelector('#chart').toDataURL()")


def frames():
    """Returns the frames of the graph: name, row from the bottom, and share of the width."""
    return js("""(() => { const w = document.querySelector("#graph").clientWidth;
        const bottom = document.querySelector("#graph").getBoundingClientRect().bottom;
        return [...document.querySelectorAll(".frame")].map((e) => { const b =
        e.getBoundingClientRect(); return [e.title.replace(/( [(][^()]*[)])?: [0-9.]*%.*/, ""),
        Math.round((bottom - b.bottom) / 18) + 1, Math.round(b.width / w * 1000)]; })
        .sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : a[0] > b[0]) || a[2] - b[2]); })()""")


def frame(name, row):
    """Returns the selector of the frame in this row whose title begins with the name."""
    return ".frame:nth-child(%d)" % (1 + js("""(() => {
        const bottom = document.querySelector("#graph").getBoundingClientRect().bottom;
        return [...document.querySelectorAll(".frame")].findIndex((e) => e.title.startsWith(%s) &&
        Math.round((bottom - e.getBoundingClientRect().bottom) / 18) + 1 == %d); })()"""
        % (json.dumps(name), row)))


def styles():
    """Returns how the frames are coloured, by the names of their functions."""
    return {title.split(" (")[0]: style.split(" ")[1] for title, style in
            zip(each(".frame", "title"), each(".frame", "className"))}


def current():
    """Returns what is selected: by the table, and by the graph."""
    return [texts("#body tr[aria-current=true] td:last-child"),
            sorted(set(js("[...document.querySelectorAll('.frame.selected')].map((e) => "
                          "e.title.split(' ')[0])")))]


def same(got, want):
    assert got == want, "\n%s\nis not\n%s" % (got, want)


def profil(*arguments):
    """Returns the lines that the command prints."""
    return subprocess.run([os.environ["PROFIL"], *arguments], check=True, capture_output=True,
                          text=True).stdout.splitlines()


def report(*options):
    """Returns the rows of profil report as the table of the page has them."""
    rows = list(csv.reader(profil("report", "--csv", "-i", os.environ["DATA"], *options)))[1:]
    return [["%.2f%%" % (100 * float(row[0])), "%.2f%%" % (100 * float(row[1])),
             "{:,}".format(int(row[2]))] + row[5:] for row in rows]


def tree(*options):
    """Returns the rows of profil report with --children, --callers or --callees."""
    rows = profil("report", "-i", os.environ["DATA"], *options)
    title = next(i for i, row in enumerate(rows) if row.endswith(" symbol"))
    return [row.split(None, 4) for row in rows[title + 1:]]


def children(*options):
    """Returns the rows of functions: self, with callees, binary, symbol."""
    return sorted([row[2], row[0], row[3], row[4]]
                  for row in tree("--children", "--inline", "--full-names", *options))


def changes(*options):
    """Returns the rows of profil diff as the page has them, those with more time in B first."""
    rows = csv.DictReader(profil("diff", "--csv", os.environ["A"], os.environ["B"], *options))
    return sorted((row for row in rows if row["changed"] == "1"),
                  key=lambda row: float(row["change"]) < 0)


def problems(url):
    """Returns the requests but that of the page, and what the browser has reported."""
    found = []
    for event in browser.events:
        method, params = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent" and params["request"]["url"] != url:
            found.append("request: " + params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            found.append("exception: %s" % params["exceptionDetails"])
        elif method == "Log.entryAdded":
            found.append("log: %s" % params["entry"]["text"])
    return found


def main():
    global browser
    url = pathlib.Path(sys.argv[2]).resolve().as_uri()
    code = compile(sys.stdin.read(), "CODE", "exec")
    browser = Browser(sys.argv[1])
    try:
        for domain in ("Page", "Runtime", "Network", "Log"):
            browser.call(domain + ".enable")
        size(1200, 760)
        browser.events = []
        browser.call("Page.navigate", url=url)
        browser.wait("Page.loadEventFired")
        exec(code, globals())
        js("0")
        found = problems(url)
        if found:
            sys.exit("\n".join(found))
    finally:
        browser.end()


main()
