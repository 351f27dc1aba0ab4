package foreigntest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// javaFolder is where Debian keeps what Java programs use.
const javaFolder = "/usr/share/java"

// curator returns the class path of Curator.
func curator(folder string) (string, error) {
	var classes []string
	for _, name := range []string{"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "guava", "slf4j-api", "slf4j-nop"} {
		path := filepath.Join(folder, name+".jar")
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("foreigntest: Curator is missing: install the Debian packages libcurator-recipes-java and default-jdk-headless: %w", err)
		}
		classes = append(classes, path)
	}
	return strings.Join(classes, string(os.PathListSeparator)), nil
}

// CompileWithCurator compiles a program that uses Curator, of one class, and returns the class path with which java runs it. What was compiled stays, so that each text is
// compiled once on a machine, and not at each start: that takes a second.
func CompileWithCurator(class string, text []byte) (classpath string, err error) {
	jars, err := curator(javaFolder)
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	folder := filepath.Join(cache, fmt.Sprintf("%s-%x", class, sum[:8]))
	classpath = jars + string(os.PathListSeparator) + folder
	if _, err := os.Stat(folder); err == nil {
		return classpath, nil
	}
	building, err := os.MkdirTemp(cache, "building-*")
	if err != nil {
		return "", fmt.Errorf("foreigntest: %w", err)
	}
	defer func() { _ = os.RemoveAll(building) }()
	source := filepath.Join(building, class+".java")
	if err := os.WriteFile(source, text, 0o600); err != nil {
		return "", fmt.Errorf("foreigntest: %w", err)
	}
	if out, err := exec.Command("javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-cp", jars, "-d", building, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("foreigntest: compile %s.java: %w\n%s", class, err, out)
	}
	if err := os.Rename(building, folder); err != nil {
		if _, there := os.Stat(folder); there != nil { // or else another process was first
			return "", fmt.Errorf("foreigntest: %w", err)
		}
	}
	return classpath, nil
}
