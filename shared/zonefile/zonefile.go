package zonefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"punctual/shared/calendar"
	"punctual/shared/telemetry"
)

// maxFile bounds the file; all zones compressed take a tenth of it.
const maxFile = 8 << 20

// Take makes this process use the rules in the file, as calendar.Renew describes it. An absent file, or an empty name,
// is no fault. A main calls it before anything reads a calendar.
func Take(name string, log *slog.Logger) {
	err := take(name)
	switch {
	case name == "" || errors.Is(err, fs.ErrNotExist):
	case err != nil:
		log.Error("newer time zone rules were not taken", "file", name, telemetry.Err, err.Error(), "zone_rules",
			calendar.Zones().Version)
	default:
		log.Info("newer time zone rules were taken", "file", name, "zone_rules", calendar.Zones().Version)
	}
}

func take(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	if len(data) > maxFile {
		return fmt.Errorf("it has over %d bytes", maxFile)
	}
	return calendar.Renew(data)
}
