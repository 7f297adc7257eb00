package calendar

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestZones_AreThoseOfThePinnedPackage(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256(zoneinfo)
	recorded, err := os.ReadFile("zoneinfo.sha256")
	if err != nil || strings.TrimSpace(string(recorded)) != hex.EncodeToString(sum[:]) {
		t.Errorf("zoneinfo.zip is not the one that make zones has built: %v", err)
	}
	pinned, err := os.ReadFile("zones.txt")
	year, letter := embedded().Version[:4], int(embedded().Version[4]-'a')
	if want := fmt.Sprintf("tzdata==%s.%d ", year, letter+1); err != nil || !strings.Contains(string(pinned), want) {
		t.Errorf("zones.txt does not pin %s: %v", want, err)
	}
	if n := len(embedded().files); n != 597 {
		t.Errorf("%d zones, want 597", n)
	}
	if r := embedded().Rules; r.ReleasedAt.Year() < 2026 || r.ReleasedAt.Hour() != 0 {
		t.Errorf("released at %s", r.ReleasedAt)
	}
}

// The other source is Debian's package, as libc's zdump reads it. Debian compiles IANA's data by itself, and keeps
// other histories of WET and EET.
func TestZones_AgreeWithASecondSource(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/zones.json")
	if err != nil {
		t.Fatal(err)
	}
	var other struct {
		Version string            `json:"version"`
		Zones   map[string]string `json:"zones"`
	}
	if err := json.Unmarshal(raw, &other); err != nil {
		t.Fatal(err)
	}
	if other.Version != embedded().Version || len(other.Zones) != len(embedded().files) {
		t.Fatalf(
			"the other source is %s of %d zones, want %s of %d",
			other.Version,
			len(other.Zones),
			embedded().Version,
			len(embedded().files),
		)
	}
	from, to := at("2000-01-01T00:00:00Z").Unix(), at("2100-01-01T00:00:00Z").Unix()
	for name, want := range other.Zones {
		z, refused := embedded().find("", name)
		if refused != nil {
			t.Fatal(refused)
		}
		changes := fmt.Sprintln(0, z.offset[z.find(from)])
		for i := z.find(from) + 1; i < len(z.at) && z.at[i] < to; i++ {
			changes += fmt.Sprintln(z.at[i], z.offset[i])
		}
		sum := sha256.Sum256([]byte(changes))
		if got := hex.EncodeToString(sum[:8]); got != want {
			t.Errorf("%s changes otherwise in the other source", name)
		}
	}
}

//proof:of F75
func TestZones_KnowTheRulesOfThisYear(t *testing.T) {
	t.Parallel()
	for zone, want := range map[string]string{
		"America/Vancouver": "2026-11-30T16:00:00Z", "America/Edmonton": "2026-11-30T15:00:00Z",
		"America/Winnipeg": "2026-11-30T14:00:00Z", "America/Havana": "2026-11-30T13:00:00Z",
		"Africa/Casablanca": "2026-11-30T09:00:00Z", "Europe/Berlin": "2026-11-30T08:00:00Z",
	} {
		c := mustParse(t, Spec{Cron: new("0 9 * * *"), Timezone: &zone}, nil)
		if o, _ := c.Next(at("2026-11-29T23:00:00Z")); !o.NominalAt.Equal(at(want)) {
			t.Errorf("9 o'clock in %s is %s, want %s", zone, o.NominalAt, want)
		}
	}
}

func TestRules_AreOldAfter120Days(t *testing.T) {
	t.Parallel()
	r := Rules{"2026f", at("2026-10-28T00:00:00Z")}
	for now, old := range map[string]bool{
		"2020-01-01T00:00:00Z": false, "2026-11-29T00:00:00Z": false, "2027-02-25T00:00:00Z": false,
		"2027-02-25T00:00:01Z": true,
	} {
		if r.Old(at(now)) != old {
			t.Errorf("old at %s: %v, at an age of %s", now, r.Old(at(now)), r.Age(at(now)))
		}
	}
}

// repacked returns the embedded rules as a package of another release, in a folder as in a wheel.
func repacked(t *testing.T, version string, change func(name string, data []byte) []byte) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		var data bytes.Buffer
		if _, err := data.ReadFrom(from); err != nil {
			t.Fatal(err)
		}
		content := data.Bytes()
		if f.Name == "tzdata.zi" {
			content = []byte("# version " + version + "\n")
		}
		if content = change(f.Name, content); content == nil {
			continue
		}
		part, err := w.CreateHeader(&zip.FileHeader{Name: "tzdata/zoneinfo/" + f.Name, Method: zip.Deflate,
			Modified: time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRenew_ReadsNewerRulesAndNoOthers(t *testing.T) {
	t.Parallel()
	same := func(_ string, data []byte) []byte { return data }
	newer := repacked(t, "2031b", same)
	set, err := renewal(newer)
	if err != nil || set.Version != "2031b" || !set.ReleasedAt.Equal(at("2031-05-06T00:00:00Z")) {
		t.Errorf("newer rules: %+v, %v", set, err)
	}
	z, refused := set.find("", "Europe/Berlin")
	if refused != nil || len(z.at) < 300 {
		t.Errorf("Berlin: %v", refused)
	}
	without := func(gone string) func(string, []byte) []byte {
		return func(name string, data []byte) []byte {
			if name == gone {
				return nil
			}
			return data
		}
	}
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":        {nil, "reading zone rules"},
		"no zip":         {[]byte("TZif2"), "reading zone rules"},
		"a part":         {newer[:len(newer)/2], "reading zone rules"},
		"the same":       {zoneinfo, "not newer than " + embedded().Version},
		"older":          {repacked(t, "2025c", same), "not newer"},
		"no release":     {repacked(t, "2031b", without("tzdata.zi")), "no tzdata.zi"},
		"another text":   {repacked(t, "of tomorrow", same), "does not begin with its release"},
		"a zone missing": {repacked(t, "2031b", without("Europe/Berlin")), `"Europe/Berlin" does not exist`},
		"a damaged zone": {repacked(t, "2031b", func(name string, data []byte) []byte {
			if name == "Asia/Tokyo" {
				return data[:20]
			}
			return data
		}), `"Asia/Tokyo" cannot be read`},
	} {
		if _, err := renewal(tt.data); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	if err := Renew(zoneinfo); err == nil || Zones() != embedded().Rules {
		t.Errorf("rules that are refused are in use: %v", err)
	}
}
