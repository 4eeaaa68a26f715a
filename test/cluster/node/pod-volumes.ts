// The volumes of a Pod as folders, as a kubelet fills them: files are links into a folder of one version, which is swapped at once.
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

/** What volumes are filled from. */
export interface VolumeContents {
  /** `data` decoded; undefined when there is no such Secret. */
  secret(namespace: string, name: string): Payload | undefined;
  configMap(namespace: string, name: string): Payload | undefined;
  /** A token of the Pod's service account. */
  token(pod: Pod, options: { readonly audience?: string; readonly expirationSeconds?: number }): Promise<string>;
}

export class PodVolumes {
  readonly #pod: Pod;
  readonly #folder: string;
  readonly #address: string;
  readonly #contents: VolumeContents;
  /** By volume and path: a Pod keeps its token. */
  readonly #tokens = new Map<string, string>();
  /** What is in which volume, as digests. */
  readonly #written = new Map<string, string>();

  constructor(options: { pod: Pod; folder: string; address: string; contents: VolumeContents }) {
    this.#pod = options.pod;
    this.#folder = options.folder;
    this.#address = options.address;
    this.#contents = options.contents;
  }

  /** Brings all folders up to date. @throws Error that says what is missing */
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

  /** Whether a Secret or a ConfigMap of this name is in any volume. */
  uses(kind: 'secret' | 'configMap', name: string): boolean {
    const sources = (this.#pod.spec.volumes ?? []).flatMap((volume) => [volume, ...(volume.projected?.sources ?? [])]);
    return sources.some((source) => nameOf(source, kind) === name);
  }

  /** The text with paths of mounted volumes in the place of the paths in the container. */
  mapped(text: string, mounts: readonly VolumeMount[]): string {
    // The longest first: one mount may be in another.
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
        return `${text.slice(0, at)}${path}${this.mapped(text.slice(at + mountPath.length), mounts)}`;
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
      return chosen(`Secret ${namespace}/${name}`, this.#contents.secret(namespace, name), secret);
    }
    if (configMap !== undefined) {
      const found = this.#contents.configMap(namespace, configMap.name);
      return chosen(`ConfigMap ${namespace}/${configMap.name}`, found, configMap);
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

/** The keys that a volume wants under their paths. */
function chosen(
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

/** Data of a Secret. */
export function decoded(data: Readonly<Record<string, string>> | undefined): Payload {
  return new Map(Object.entries(data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64')]));
}

function digestOf(payload: Payload): string {
  const hash = createHash('sha256');
  payload.forEach((content, path) => hash.update(JSON.stringify([path, content.toString('base64')])));
  return hash.digest('base64');
}

/** As a kubelet does it: files are written in a folder of their own, then `..data` becomes a link to it, in one step. */
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
