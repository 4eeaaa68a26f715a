// The volumes of a Pod as folders. As a kubelet does, files are links into a folder with one version, which is replaced atomically.
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fieldOf, type KeyToPath, type Pod, type Volume, type VolumeMount, type VolumeSource } from './pod.ts';

/** Files by path. */
type Payload = ReadonlyMap<string, Buffer>;

/** A folder that a container has at a path. */
export interface PodMount {
  readonly mountPath: string;
  readonly folder: string;
  readonly isWritable: boolean;
}

/** The sources of volumes. */
export interface VolumeContents {
  /** The decoded `data`. Undefined when the Secret does not exist. */
  secret(namespace: string, name: string): Payload | undefined;
  configMap(namespace: string, name: string): Payload | undefined;
  /** Creates a token of the Pod's service account. */
  token(pod: Pod, options: { readonly audience?: string; readonly expirationSeconds?: number }): Promise<string>;
}

export class PodVolumes {
  readonly #pod: Pod;
  readonly #folder: string;
  readonly #address: string;
  readonly #contents: VolumeContents;
  /** Tokens by volume and path. They are not renewed. */
  readonly #tokens = new Map<string, string>();
  /** Digests of the content, by volume. */
  readonly #written = new Map<string, string>();

  constructor(options: { pod: Pod; folder: string; address: string; contents: VolumeContents }) {
    this.#pod = options.pod;
    this.#folder = options.folder;
    this.#address = options.address;
    this.#contents = options.contents;
  }

  /** Updates the files of all volumes. @throws Error that names a missing source */
  async fill(): Promise<void> {
    for (const volume of this.#pod.spec.volumes ?? []) {
      const folder = join(this.#folder, volume.name);
      mkdirSync(folder, { recursive: true });
      if (volume.emptyDir === undefined) {
        const payload = await this.#payload(volume);
        const digest = digestOf(payload);
        if (this.#written.get(volume.name) !== digest) {
          writeVersion(folder, payload);
          this.#written.set(volume.name, digest);
        }
      }
    }
  }

  /** Whether a volume has this Secret or ConfigMap as its source. */
  uses(kind: 'secret' | 'configMap', name: string): boolean {
    const sources = (this.#pod.spec.volumes ?? []).flatMap((volume) => [volume, ...(volume.projected?.sources ?? [])]);
    return sources.some((source) => nameOf(source, kind) === name);
  }

  /** The folders of the mounts of a container. */
  mounted(mounts: readonly VolumeMount[]): readonly PodMount[] {
    const writable = (this.#pod.spec.volumes ?? []).filter(({ emptyDir }) => emptyDir !== undefined);
    return mounts.map(({ name, mountPath, subPath = '' }) => ({
      mountPath,
      folder: join(this.#folder, name, subPath),
      isWritable: writable.some((volume) => volume.name === name),
    }));
  }

  /** Replaces mount paths of the container in a text by the folders of the volumes. */
  withMountPaths(text: string, mounts: readonly VolumeMount[]): string {
    // The longest path first, because one mount may be within another.
    for (const { name, mountPath, subPath = '' } of mounts.toSorted(
      (a, b) => b.mountPath.length - a.mountPath.length,
    )) {
      const at = text.indexOf(mountPath);
      const next = text[at + mountPath.length];
      const before = text[at - 1];
      if (
        at >= 0 &&
        (next === undefined || '/,:'.includes(next)) &&
        (before === undefined || '=,: '.includes(before))
      ) {
        const path = join(this.#folder, name, subPath);
        return `${text.slice(0, at)}${path}${this.withMountPaths(text.slice(at + mountPath.length), mounts)}`;
      }
    }
    return text;
  }

  async #payload(volume: Volume): Promise<Payload> {
    const payload = new Map<string, Buffer>();
    for (const source of volume.projected?.sources ?? [volume]) {
      for (const [path, content] of await this.#files(volume.name, source)) {
        payload.set(path, content);
      }
    }
    return payload;
  }

  async #files(volume: string, source: VolumeSource): Promise<Payload> {
    const { secret, configMap, downwardAPI, serviceAccountToken } = source;
    const { namespace } = this.#pod.metadata;
    if (secret !== undefined) {
      const name = nameOf(source, 'secret') ?? '';
      return selectedFiles(`Secret ${namespace}/${name}`, this.#contents.secret(namespace, name), secret);
    }
    if (configMap !== undefined) {
      const found = this.#contents.configMap(namespace, configMap.name);
      return selectedFiles(`ConfigMap ${namespace}/${configMap.name}`, found, configMap);
    }
    if (serviceAccountToken !== undefined) {
      const key = `${volume}/${serviceAccountToken.path}`;
      const token = this.#tokens.get(key) ?? (await this.#contents.token(this.#pod, serviceAccountToken));
      this.#tokens.set(key, token);
      return new Map([[serviceAccountToken.path, Buffer.from(token)]]);
    }
    if (downwardAPI !== undefined) {
      const items = downwardAPI.items ?? [];
      return new Map(items.map(({ path, fieldRef }) => [path, Buffer.from(this.#field(fieldRef?.fieldPath ?? ''))]));
    }
    throw new Error(`volume ${volume}: the node of the tests knows no source of this kind`);
  }

  #field(path: string): string {
    return fieldOf(this.#pod, path, this.#address) ?? '';
  }
}

function nameOf(source: VolumeSource, kind: 'secret' | 'configMap'): string | undefined {
  return kind === 'secret' ? (source.secret?.secretName ?? source.secret?.name) : source.configMap?.name;
}

/** The keys that the `items` of a volume select, by path. */
function selectedFiles(
  what: string,
  found: Payload | undefined,
  { items, optional = false }: { readonly items?: readonly KeyToPath[]; readonly optional?: boolean },
): Payload {
  if (found === undefined) {
    if (optional) {
      return new Map();
    }
    throw new Error(`${what} not found`);
  }
  if (items === undefined) {
    return found;
  }
  const files = new Map<string, Buffer>();
  for (const { key, path } of items) {
    const content = found.get(key);
    if (content !== undefined) {
      files.set(path, content);
    } else if (!optional) {
      throw new Error(`${what} has no key ${key}`);
    }
  }
  return files;
}

/** The decoded data of a Secret. */
export function decoded(data: Readonly<Record<string, string>> | undefined): Payload {
  return new Map(Object.entries(data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64')]));
}

function digestOf(payload: Payload): string {
  const hash = createHash('sha256');
  payload.forEach((content, path) => hash.update(JSON.stringify([path, content.toString('base64')])));
  return hash.digest('base64');
}

/** Writes files to a new folder, then replaces the link `..data` to it atomically, as a kubelet does. */
function writeVersion(folder: string, payload: Payload): void {
  const data = join(folder, '..data');
  const before = existsSync(data) ? readlinkSync(data) : undefined;
  const version = `..${process.hrtime.bigint()}`;
  mkdirSync(join(folder, version));
  for (const [path, content] of payload) {
    mkdirSync(dirname(join(folder, version, path)), { recursive: true });
    writeFileSync(join(folder, version, path), content);
  }
  symlinkSync(version, join(folder, '..data_tmp'));
  renameSync(join(folder, '..data_tmp'), data);
  const entries = new Set([...payload.keys()].map((path) => path.split('/')[0] ?? path));
  for (const entry of entries) {
    if (!existsSync(join(folder, entry))) {
      rmSync(join(folder, entry), { force: true });
      symlinkSync(join('..data', entry), join(folder, entry));
    }
  }
  for (const entry of readdirSync(folder).filter((name) => !name.startsWith('..') && !entries.has(name))) {
    rmSync(join(folder, entry), { force: true });
  }
  if (before !== undefined) {
    rmSync(join(folder, before), { recursive: true, force: true });
  }
}
