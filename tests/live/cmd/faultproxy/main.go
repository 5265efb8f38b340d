// faultproxy stands between a scheduler and an API server and does what networks and servers do: it cuts watches and
// answers with errors. POST /-/faults says which; GET /-/counts says how often each happened.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"log"
	"math/rand"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Faults is what goes wrong, and how often.
type Faults struct {
	// CutWatchesAfter ends each watch after a random time of up to so many seconds.
	CutWatchesAfter float64 `json:"cutWatchesAfter"`
	// StallWatches accepts watches and never says anything, as a half-open connection does.
	StallWatches bool `json:"stallWatches"`
	// Answers are given instead of passing a request on.
	Answers []Answer `json:"answers"`
}

// Answer is an HTTP status for a share of the requests of a method whose path contains a text.
type Answer struct {
	Method       string  `json:"method"`
	PathContains string  `json:"pathContains"`
	Share        float64 `json:"share"`
	Code         int     `json:"code"`
	RetryAfter   int     `json:"retryAfter"`
	// After lets the request through first: the server did it, but the client does not get to know.
	After bool `json:"after"`
}

type proxy struct {
	mutex  sync.Mutex
	faults Faults
	counts map[string]int
	server http.Handler
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "where to listen")
	to := flag.String("to", "", "the API server")
	flag.Parse()
	target, err := url.Parse(*to)
	if err != nil {
		log.Fatal(err)
	}
	server := httputil.NewSingleHostReverseProxy(target)
	server.Transport = &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 200,
	}
	server.FlushInterval = -1
	server.ErrorLog = log.New(discard{}, "", 0)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, &proxy{server: server, counts: map[string]int{}}))
}

type discard struct{}

func (discard) Write(text []byte) (int, error) { return len(text), nil }

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/-/faults":
		var faults Faults
		if err := json.NewDecoder(r.Body).Decode(&faults); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.mutex.Lock()
		p.faults = faults
		p.mutex.Unlock()
	case "/-/counts":
		p.mutex.Lock()
		defer p.mutex.Unlock()
		json.NewEncoder(w).Encode(p.counts)
	default:
		p.pass(w, r)
	}
}

func (p *proxy) pass(w http.ResponseWriter, r *http.Request) {
	p.mutex.Lock()
	faults := p.faults
	p.mutex.Unlock()
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") {
		p.count("writes")
	}
	if r.URL.Query().Get("watch") != "" {
		if faults.StallWatches {
			p.count("stalled")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		if faults.CutWatchesAfter > 0 {
			after := time.Duration(rand.Float64() * faults.CutWatchesAfter * float64(time.Second))
			// The proxy then closes the connection in the middle of the answer, as a network that fails does.
			limited, cancel := context.WithTimeout(r.Context(), after)
			defer cancel()
			defer func() {
				if limited.Err() == context.DeadlineExceeded {
					p.count("cut")
				}
			}()
			r = r.WithContext(limited)
		}
		p.server.ServeHTTP(w, r)
		return
	}
	for _, each := range faults.Answers {
		if each.Method != "" && each.Method != r.Method || !strings.Contains(r.URL.Path, each.PathContains) {
			continue
		}
		if rand.Float64() >= each.Share {
			continue
		}
		p.count(strconv.Itoa(each.Code))
		if each.After {
			p.server.ServeHTTP(&nowhere{header: http.Header{}}, r)
		}
		if each.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(each.RetryAfter))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(each.Code)
		json.NewEncoder(w).Encode(map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": each.Code, "message": "injected by the test",
		})
		return
	}
	p.server.ServeHTTP(w, r)
}

func (p *proxy) count(what string) {
	p.mutex.Lock()
	p.counts[what]++
	p.mutex.Unlock()
}

type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header            { return n.header }
func (n *nowhere) Write(text []byte) (int, error) { return len(text), nil }
func (n *nowhere) WriteHeader(int)                {}
