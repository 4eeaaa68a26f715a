// The image, unpacked, and its processes in a sandbox, as a container runtime runs them: the user and the environment of its
// configuration, a read-only root, no capabilities. Namespaces of the network and of processes are those of the machine.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { extract } from 'tar';
import { type CommandResult, run } from '../cli/command.ts';
import { findOnPath } from '../cluster/binaries.ts';
import { POD_NETWORK } from '../cluster/node/node.ts';
import type { ContainerSpec, Pod } from '../cluster/node/pod.ts';
import type { PodMount } from '../cluster/node/pod-volumes.ts';

/** https://github.com/containers/bubblewrap */
const BUBBLEWRAP = 'bwrap';
/** Where the image has {@link POD_NETWORK}. */
const POD_NETWORK_PLACE = '/run/pod-network.ts';
/** Files that a kubelet mounts. */
const HOST_FILES = ['/etc/hosts', '/etc/resolv.conf'];

/** Bubblewrap passes no signal on, so this shell does; it ends with the exit code of the program. */
const FORWARDING_SIGNALS = `
"$@" &
sandbox=$!
trap 'read -r children </proc/$sandbox/task/$sandbox/children; kill -TERM $children' TERM
wait $sandbox
status=$?
while kill -0 $sandbox 2>/dev/null; do
  wait $sandbox
  status=$?
done
exit $status`;

/**
 * Prepares a root ($1) for a user ($2), in a mount namespace of root: with the mounts that follow as `ro|rw FOLDER PATH`, to an
 * argument `--`. Then come variables, and the command that changes to them.
 */
const CHROOT = `
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
  mount --bind "$2" "$root$3"
  mount -o "remount,bind,$1" "$root$3"
  [ "$1" = ro ] || chown "$user" "$2"
  shift 3
done
shift
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs env --unset=NODE_COMPILE_CACHE "$@"`;

interface Descriptor {
  readonly digest: string;
  readonly platform?: { readonly architecture: string };
}

/** The configuration of an image. */
export interface ImageConfig {
  readonly architecture: string;
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
  };
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

/** The image of one platform in an OCI layout. */
export class LayoutImage {
  readonly config: ImageConfig;
  /** Paths of the compressed layers. */
  readonly layers: readonly string[];

  constructor(layout: string, architecture: string) {
    const blob = ({ digest }: Descriptor): string => join(layout, 'blobs', ...digest.split(':'));
    const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
    type Index = { readonly manifests: readonly [Descriptor, ...Descriptor[]] };
    const [index] = (read(join(layout, 'index.json')) as Index).manifests;
    const { manifests } = read(blob(index)) as Index;
    const found = manifests.find(({ platform }) => platform?.architecture === architecture);
    assert.ok(found, `no image for ${architecture}`);
    const manifest = read(blob(found)) as { readonly config: Descriptor; readonly layers: readonly Descriptor[] };
    this.config = read(blob(manifest.config)) as ImageConfig;
    this.layers = manifest.layers.map(blob);
  }
}

/** How containers are isolated: bubblewrap needs user namespaces, chroot needs root. */
export type Isolation = 'bubblewrap' | 'chroot';

/** What this machine allows; undefined if neither. */
export async function findIsolation(): Promise<Isolation | undefined> {
  const succeeds = async (program: string, ...args: readonly string[]): Promise<boolean> =>
    findOnPath(program) !== undefined && (await run(program, args)).code === 0;
  if (await succeeds(BUBBLEWRAP, '--unshare-user', '--ro-bind', '/', '/', 'true')) {
    return 'bubblewrap';
  }
  return process.getuid?.() === 0 && (await succeeds('unshare', '--mount', 'true')) ? 'chroot' : undefined;
}

export class ImageSandbox {
  readonly #folder: string;
  readonly #config: ImageConfig['config'];
  readonly #isolation: Isolation;

  private constructor(folder: string, { config }: ImageConfig, isolation: Isolation) {
    this.#folder = folder;
    this.#config = config;
    this.#isolation = isolation;
  }

  /** Unpacks an image. @param folder an empty folder */
  static async unpack({ layers, config }: LayoutImage, folder: string, isolation: Isolation): Promise<ImageSandbox> {
    chmodSync(folder, 0o755);
    for (const file of layers) {
      await extract({ file, cwd: folder });
    }
    for (const path of [POD_NETWORK_PLACE, ...HOST_FILES]) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), '');
    }
    ['dev', 'proc'].forEach((name) => mkdirSync(join(folder, name)));
    return new ImageSandbox(folder, config, isolation);
  }

  /** The command of a container whose security context the sandbox has. */
  command(pod: Pod, container: ContainerSpec, mounts: readonly PodMount[]): readonly string[] {
    const { User, Entrypoint } = this.#config;
    const [program = '', ...args] = Entrypoint;
    const { runAsUser, runAsNonRoot } = pod.spec.securityContext ?? {};
    assert.deepEqual([`${runAsUser ?? User.split(':')[0]}`, runAsNonRoot], [User.split(':')[0], true]);
    const { readOnlyRootFilesystem, capabilities, allowPrivilegeEscalation } = container.securityContext ?? {};
    assert.deepEqual([readOnlyRootFilesystem, capabilities?.drop, allowPrivilegeEscalation], [true, ['ALL'], false]);
    const own = (container.env ?? []).map(({ name }) => name);
    return [...this.#sandbox(own, mounts), program, '--import', POD_NETWORK_PLACE, ...args];
  }

  /** Runs a program of the image. */
  run(...command: readonly string[]): Promise<CommandResult> {
    const [program = '', ...args] = this.#sandbox([], []);
    return run(program, [...args, ...command]);
  }

  /** @param set variables that the container sets itself */
  #sandbox(set: readonly string[], mounts: readonly PodMount[]): readonly string[] {
    const all = [
      ...HOST_FILES.map((path) => ({ mountPath: path, folder: path, isWritable: false })),
      { mountPath: POD_NETWORK_PLACE, folder: POD_NETWORK, isWritable: false },
      ...mounts.map((mount) => this.#prepared(mount)),
    ];
    const variables = this.#config.Env.filter((text) => !set.includes(splitOnce(text)[0]));
    return this.#isolation === 'bubblewrap' ? this.#bubblewrap(all, variables) : this.#chroot(all, variables);
  }

  #bubblewrap(mounts: readonly PodMount[], variables: readonly string[]): readonly string[] {
    const [user = '', group = ''] = this.#config.User.split(':');
    return [
      '/bin/sh',
      '-c',
      FORWARDING_SIGNALS,
      'sandbox',
      findOnPath(BUBBLEWRAP) ?? BUBBLEWRAP,
      '--unshare-user',
      '--uid',
      user,
      '--gid',
      group,
      '--cap-drop',
      'ALL',
      '--die-with-parent',
      '--ro-bind',
      this.#folder,
      '/',
      '--ro-bind',
      '/proc',
      '/proc',
      '--dev',
      '/dev',
      '--chdir',
      '/',
      ...mounts.flatMap(({ mountPath, folder, isWritable }) => [
        isWritable ? '--bind' : '--ro-bind',
        folder,
        mountPath,
      ]),
      '--unsetenv',
      'NODE_COMPILE_CACHE',
      ...variables.flatMap((text) => ['--setenv', ...splitOnce(text)]),
    ];
  }

  #chroot(mounts: readonly PodMount[], variables: readonly string[]): readonly string[] {
    return [
      findOnPath('unshare') ?? 'unshare',
      '--mount',
      '/bin/sh',
      '-e',
      '-c',
      CHROOT,
      'sandbox',
      this.#folder,
      this.#config.User,
      ...mounts.flatMap(({ mountPath, folder, isWritable }) => [isWritable ? 'rw' : 'ro', folder, mountPath]),
      '--',
      ...variables,
      findOnPath('chroot') ?? '/usr/sbin/chroot',
      `--userspec=${this.#config.User}`,
      '--groups=',
      this.#folder,
    ];
  }

  /** A container runtime creates the folder to mount at, too. */
  #prepared(mount: PodMount): PodMount {
    mkdirSync(join(this.#folder, mount.mountPath), { recursive: true });
    mkdirSync(mount.folder, { recursive: true });
    return mount;
  }
}

/** The name and the value of a variable. */
function splitOnce(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}
