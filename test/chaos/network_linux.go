package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// insideVariable is set for a harness that runs in namespaces of its own.
const insideVariable = "CHAOS_INSIDE"

// Isolate runs this program again in network and mount namespaces of its own, where it may make one more for each process,
// and gives its exit code. They vanish with it. ran is false within, and when the machine does not let it; the error
// then says why.
func Isolate(ctx context.Context) (code int, ran bool, err error) {
	switch os.Getenv(insideVariable) {
	case "":
	case probing:
		return probe(), true, nil
	default:
		return 0, false, nil
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return 0, false, errors.New("the program ip (iproute2) is not installed")
	}
	// The kernel ends the child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if out, err := inside(probing).CombinedOutput(); err != nil {
		return 0, false, fmt.Errorf("the machine allows no network namespaces: %w: %s", err, strings.TrimSpace(string(out)))
	}
	// What it builds has to be there: its network leads nowhere.
	download := exec.CommandContext(ctx, "go", "mod", "download")
	download.Stderr = os.Stderr
	if err := download.Run(); err != nil {
		return 0, false, fmt.Errorf("go mod download: %w", err)
	}
	cmd := inside("1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(1, exit.ExitCode()), true, nil
	}
	return 0, true, err
}

// probing is the value of the variable for a program that only tries.
const probing = "probe"

func inside(value string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...) //nolint:gosec // itself
	cmd.Env = append(os.Environ(), insideVariable+"="+value)
	cmd.SysProcAttr = namespaces()
	return cmd
}

// probe tries what a run needs.
func probe() int {
	if _, err := isolated(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := addHost("probe", hostNet+"250"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if out, err := exec.Command("ip", "netns", "exec", "probe", "true").CombinedOutput(); err != nil {
		fmt.Fprintln(os.Stderr, err, string(out))
		return 1
	}
	return 0
}

// namespaces are those of the harness. Who is not root is root in a user namespace.
func namespaces() *syscall.SysProcAttr {
	attr := dieWithParent()
	attr.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// isolated says whether this harness runs in namespaces of its own, and prepares them.
func isolated() (bool, error) {
	if os.Getenv(insideVariable) == "" {
		return false, nil
	}
	// `ip netns` keeps its names under /run, which is to be nobody else's.
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return false, fmt.Errorf("make the mounts private: %w", err)
	}
	if err := syscall.Mount("chaos", "/run", "tmpfs", 0, ""); err != nil {
		return false, fmt.Errorf("mount /run: %w", err)
	}
	return true, ip(
		"link set lo up",
		"link add chaos type bridge",
		"address add "+hostNet+"1/24 dev chaos",
		"link set chaos up",
	)
}

// addHost makes a namespace with an address.
func addHost(name, address string) error {
	return ip(
		"netns add "+name,
		"link add "+name+" type veth peer name eth0 netns "+name,
		"link set "+name+" master chaos up",
		"-netns "+name+" address add "+address+"/24 dev eth0",
		"-netns "+name+" link set eth0 up",
		"-netns "+name+" link set lo up",
	)
}

// cut takes a host off the network, or puts it back.
func cut(name string, off bool) error {
	state := "up"
	if off {
		state = "down"
	}
	return ip("link set " + name + " " + state)
}

// ip runs the program of that name.
func ip(commands ...string) error {
	for _, command := range commands {
		out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput() //nolint:gosec // fixed commands
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
