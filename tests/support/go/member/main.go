// A consumer of franz-go in a KIP-848 group: it processes, commits, and writes the lines of JSON that
// tests/support/followers/follow_processes.py judges. Its one argument has the options of a process; SIGTERM ends it.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	pollFor     = 100 * time.Millisecond
	commitEvery = 300 * time.Millisecond
	commitFor   = 2 * time.Second
)

type options struct {
	Who       string `json:"who"`
	Bootstrap string `json:"bootstrap"`
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Log       string `json:"log"`
}

type member struct {
	options
	lines  *os.File
	client *kgo.Client
}

func main() {
	var m member
	if err := json.Unmarshal([]byte(os.Args[1]), &m.options); err != nil {
		log.Fatal(err)
	}
	lines, err := os.OpenFile(m.Log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		log.Fatal(err)
	}
	m.lines = lines
	m.client, err = kgo.NewClient(
		kgo.SeedBrokers(strings.Split(m.Bootstrap, ",")...),
		kgo.ClientID(m.Who),
		kgo.ConsumerGroup(m.Group),
		kgo.ConsumeTopics(m.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// It has no way to ask for another assignor than Kafka's uniform or range.
		kgo.ServerSideBalancer(),
		kgo.Balancers(kgo.StickyBalancer()),
		kgo.DisableAutoCommit(),
		// Revocations wait until what was polled is processed.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(m.gained),
		kgo.OnPartitionsRevoked(m.revoked),
		kgo.OnPartitionsLost(m.lost),
	)
	if err != nil {
		log.Fatal(err)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	m.run(end)
}

func (m *member) run(end <-chan os.Signal) {
	committed := time.Now()
	for {
		select {
		case <-end:
			m.commit()
			m.client.CloseAllowingRebalance()
			return
		default:
		}
		polling, cancel := context.WithTimeout(context.Background(), pollFor)
		fetches := m.client.PollFetches(polling)
		cancel()
		fetches.EachRecord(func(record *kgo.Record) {
			m.note("record", map[string]any{"place": record.Partition, "offset": record.Offset})
		})
		if time.Since(committed) >= commitEvery {
			committed = time.Now()
			m.commit()
		}
		m.client.AllowRebalance()
	}
}

// commit may be refused: what a member has not committed is processed again.
func (m *member) commit() {
	within, cancel := context.WithTimeout(context.Background(), commitFor)
	defer cancel()
	_ = m.client.CommitUncommittedOffsets(within)
}

func (m *member) gained(_ context.Context, client *kgo.Client, gained map[string][]int32) {
	_, epoch := client.GroupMetadata()
	m.note("gained", map[string]any{"places": m.places(gained), "generation": epoch})
}

func (m *member) revoked(_ context.Context, _ *kgo.Client, revoked map[string][]int32) {
	m.commit()
	m.note("revoked", map[string]any{"places": m.places(revoked)})
}

func (m *member) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	m.note("lost", map[string]any{"places": m.places(lost)})
}

func (m *member) places(of map[string][]int32) []int32 {
	return append([]int32{}, of[m.Topic]...)
}

func (m *member) note(what string, more map[string]any) {
	more["at"], more["who"], more["what"] = now(), m.Who, what
	line, err := json.Marshal(more)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := m.lines.Write(append(line, '\n')); err != nil {
		log.Fatal(err)
	}
}

// now gives seconds of the machine's monotonic clock, by which the lines of all processes are compared.
func now() float64 {
	var clock syscall.Timespec
	const monotonic = 1
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&clock)), 0); errno != 0 {
		log.Fatal(errno)
	}
	return float64(clock.Sec) + float64(clock.Nsec)/1e9
}
