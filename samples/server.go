// SPDX-License-Identifier: GPL-2.0-or-later

// server PORT - an HTTP server that serves its own profile
//
//	go build server.go
//	go tool pprof http://localhost:PORT/debug/pprof/profile?seconds=5
package main

// #cgo LDFLAGS: -lprofil-pprof
// #include <profil/pprof.h>
import "C"

import (
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

// Writes a profile of the next seconds. This is all that a server needs for it.
func writeProfile(file *os.File, seconds int) error {
	profile, err := C.profil_pprof_start(1000)
	if profile == nil {
		return err
	}
	defer C.profil_pprof_stop(profile)
	time.Sleep(time.Duration(seconds) * time.Second)
	if result, err := C.profil_pprof_write(profile, C.int(file.Fd())); result != 0 {
		return err
	}
	return nil
}

func serveProfile(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.Atoi(r.FormValue("seconds"))
	if err != nil {
		seconds = 30
	}
	file, err := os.CreateTemp("", "profile")
	if err == nil {
		defer file.Close()
		os.Remove(file.Name())
		err = writeProfile(file, seconds)
	}
	if err != nil {
		http.Error(w, "profil: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	file.Seek(0, io.SeekStart)
	io.Copy(w, file)
}

// The work of the server: three quarters of the time in hot(), one in warm().

var sink int

//go:noinline
func hot(n int) {
	for i := 0; i < 3*n; i++ {
		sink ^= i
	}
}

//go:noinline
func warm(n int) {
	for i := 0; i < n; i++ {
		sink ^= i
	}
}

func work() {
	for {
		hot(100000)
		warm(100000)
	}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: server PORT")
	}
	go work()
	http.HandleFunc("/debug/pprof/profile", serveProfile)
	log.Fatal(http.ListenAndServe("localhost:"+os.Args[1], nil))
}
