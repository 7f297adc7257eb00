package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// said is what the program and dev have written.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// await waits until some words have been written that often.
func (s *said) await(t *testing.T, words string, times int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if strings.Count(text, words) >= times {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %q, %d times, in:\n%s", words, times, text)
		}
	}
}

// program prints its version and runs until it is asked to end.
const program = `package main

import ("fmt"; "os"; "os/signal"; "syscall")

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	fmt.Println("VERSION", os.Args[1])
	<-end
	fmt.Println("drained")
}
`

func TestRun_BuildsAndRunsAnewWhatHasChanged(t *testing.T) {
	t.Chdir(t.TempDir()) // of a module of its own
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module watched\n\ngo 1.26\n")
	write("main.go", strings.Replace(program, "VERSION", "one", 1))
	signals, ended, out := make(chan os.Signal, 1), make(chan error), new(said)
	go func() { ended <- run(signals, []string{"."}, []string{".", "argument"}, out, out) }()
	out.await(t, "one argument", 1)
	write("main_test.go", "package main\n") // no test is in the program
	write("main.go", "package main\n\nfunc main() { nonsense }\n")
	out.await(t, "does not build", 1)
	write("main.go", strings.Replace(program, "VERSION", "two", 1))
	out.await(t, "two argument", 1)
	out.await(t, "drained", 1)
	write("deeper/folder/new.go", "package folder\n\nconst Name = \"three\"\n")
	write("main.go", strings.NewReplacer(`"VERSION"`, "folder.Name", `import (`, `import ("watched/deeper/folder"; `).
		Replace(program))
	out.await(t, "three argument", 1)
	time.Sleep(2 * settle) // the new folders are watched by now
	write("deeper/folder/new.go", "package folder\n\nconst Name = \"four\"\n")
	out.await(t, "four argument", 1)
	signals <- syscall.SIGTERM
	if err := <-ended; err != nil {
		t.Error(err)
	}
	out.await(t, "drained", 4)
}

func TestRun_StartsAgainWhatEndedByItself(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module watched\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { println(\"ran\") }\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	signals, ended, out := make(chan os.Signal, 1), make(chan error), new(said)
	go func() { ended <- run(signals, []string{"."}, []string{"."}, out, out) }()
	out.await(t, "it ended", 1)
	if err := os.WriteFile("other.go", []byte("package main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out.await(t, "ran", 2)
	out.await(t, "it ended", 2)
	signals <- os.Interrupt
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := run(signals, []string{"nowhere"}, []string{"."}, out, out); err == nil {
		t.Error("a folder that is not there is watched")
	}
}
