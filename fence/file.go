package fence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A File is a file whose content only the latest holder of a lock can replace, on any number of processes of one
// machine. Its methods may be called concurrently, also on several Files of one path.
//
// Beside the file NAME stands NAME.fence, which holds the highest token seen and is the lock under which check and
// replacement are one step. It must never be removed while an earlier holder may still run. Content is written to a
// temporary file, synced and renamed, so a reader or a crash sees the old content or the new one and nothing between;
// the token is on the disk before the content is. A write keeps the mode of the file; owner, hard links and extended
// attributes are those of a new file. Path must not be a symbolic link, or two names would have two fences.
//
// Everybody who writes the file must do so through a File. It wants a local file system; on platforms without flock
// every method but Read returns [errors.ErrUnsupported].
type File struct {
	path string
	perm os.FileMode
}

// NewFile returns the fenced file at path. Nothing is touched yet. Files made are given perm, less the umask, as by
// [os.WriteFile]; the one beside it too, so whoever may write the file must be able to write that. They must be able
// to write the directory as well, and nobody else may: names in it are foreseeable.
func NewFile(path string, perm os.FileMode) *File {
	return &File{path: filepath.Clean(path), perm: perm.Perm() | 0o600}
}

// Claim stores token beside the file. A holder must claim before it first reads: afterwards no earlier holder can
// change the content. ctx bounds the wait for other processes in the middle of a step, each of which is short.
// Errors match [ErrStale], [ErrNoToken], [ErrRange], or are those of the file system.
func (f *File) Claim(ctx context.Context, token uint64) error {
	l, err := f.claim(ctx, token)
	if err != nil {
		return err
	}
	l.close()
	return nil
}

// Read returns the content; before the first write its error matches [fs.ErrNotExist]. A holder that will write what
// it makes of the content calls [File.Claim] first, or [File.Update], which does; anybody else just reads.
func (f *File) Read() ([]byte, error) { return os.ReadFile(f.path) }

// Write replaces the content with data if token is at least the highest seen, which it then is. Errors are as of
// [File.Claim]; after one that matches [ErrStale] nothing was changed, after an error of the file system content and
// token are each the old or the new.
func (f *File) Write(ctx context.Context, token uint64, data []byte) error {
	// The long part, writing and syncing, is done beside the lock, so that a writer stopped in it holds up nobody: the
	// temporary file is named by the token and only writers with the same token, one holder's, wait for each other.
	// The claim comes first so that every temporary file belongs to a token that the ledger has held: the claim after
	// it removes what a crash left behind.
	if err := f.Claim(ctx, token); err != nil {
		return err
	}
	temp := f.temp(token)
	t, err := openLocked(ctx, temp, f.perm)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := f.fill(t, data); err != nil {
		_ = os.Remove(temp)
		return err
	}
	l, err := f.claim(ctx, token) // a later holder may have come since
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	defer l.close()
	if err := os.Rename(temp, f.path); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return syncDir(f.path)
}

// Update claims the file, reads it, and replaces the content by what change makes of it. Content is nil before the
// first write. change may take long, for no lock is held while it runs: if a later holder claims meanwhile the
// result is refused. An error of change is returned as it is and nothing is written; other errors are as of
// [File.Write]. Two Updates with the same token are one holder's, and to keep them apart is the holder's business.
func (f *File) Update(ctx context.Context, token uint64, change func(content []byte) ([]byte, error)) error {
	if err := f.Claim(ctx, token); err != nil {
		return err
	}
	content, err := f.Read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := change(content)
	if err != nil {
		return err
	}
	return f.Write(ctx, token, data)
}

// claim stores token if the rule allows and returns the ledger still locked.
func (f *File) claim(ctx context.Context, token uint64) (*ledger, error) {
	if err := Valid(token); err != nil {
		return nil, err
	}
	if _, _, err := f.mode(); err != nil {
		return nil, err
	}
	l, err := openLedger(ctx, f.path+".fence", f.perm)
	if err != nil {
		return nil, err
	}
	before := l.highest
	if err := Check(f.path, before, token); err != nil {
		l.close()
		return nil, err
	}
	if token > before {
		if err := l.raise(token); err != nil {
			l.close()
			return nil, err
		}
		// What the holder before was writing can no longer become the content.
		_ = os.Remove(f.temp(before))
	}
	return l, nil
}

// mode is the mode of the file, if there is one yet. What is no regular file is refused.
func (f *File) mode() (mode os.FileMode, exists bool, err error) {
	info, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	case !info.Mode().IsRegular():
		return 0, false, fmt.Errorf("fence: %s must be a regular file, not %s", f.path, info.Mode().Type())
	}
	return info.Mode().Perm(), true, nil
}

// fill makes t the new content, down to the disk.
func (f *File) fill(t *os.File, data []byte) error {
	mode, exists, err := f.mode()
	if err != nil {
		return err
	}
	if exists {
		if err := t.Chmod(mode); err != nil {
			return err
		}
	}
	if err := t.Truncate(0); err != nil {
		return err
	}
	if _, err := t.WriteAt(data, 0); err != nil {
		return err
	}
	return t.Sync()
}

func (f *File) temp(token uint64) string {
	dir, base := filepath.Split(f.path)
	return filepath.Join(dir, fmt.Sprintf(".%s.fence-%d", base, token))
}
