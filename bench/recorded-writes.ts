// What a client wrote, to write the same again without it: a baseline in the same run.
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cluster, Patch } from '../src/cluster/index.ts';
import {
  isJsonObject,
  keyText,
  type KubernetesObject,
  type ObjectKey,
  type ResourceType,
} from '../src/resources/index.ts';
import { inTurns } from './scene.ts';

interface RecordedWrite {
  readonly key: ObjectKey;
  readonly patch: Patch;
  readonly fieldManager?: string;
  readonly subresource?: string;
}

/** The patches of objects of one kind. They are in a file, so that they are no memory of this process. */
export class RecordedWrites implements Disposable {
  readonly #type: ResourceType;
  readonly #folder = mkdtempSync(join(tmpdir(), 'portcullis-writes-'));
  readonly #file = join(this.#folder, 'writes.jsonl');
  readonly #descriptor = openSync(this.#file, 'w');
  #count = 0;

  constructor(type: ResourceType) {
    this.#type = type;
  }

  get count(): number {
    return this.#count;
  }

  record(type: ResourceType, key: ObjectKey, patch: Patch, options: Omit<RecordedWrite, 'key' | 'patch'> = {}): void {
    if (type.kind !== this.#type.kind) {
      return;
    }
    const { fieldManager, subresource } = options;
    this.#count += 1;
    writeSync(this.#descriptor, `${JSON.stringify({ key, patch, fieldManager, subresource })}\n`);
  }

  /** Writes each object and each subresource once, as it was written last. An object's writes follow one another. */
  async repeat(cluster: Cluster, atOnce: number): Promise<void> {
    await inTurns(this.#newest(), atOnce, async (writes) => {
      let written: KubernetesObject | undefined;
      for (const { key, patch, ...options } of writes) {
        written = await cluster.patch(this.#type, key, atVersion(patch, written), options);
      }
    });
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
    rmSync(this.#folder, { recursive: true });
  }

  /** The writes by object. */
  #newest(): readonly (readonly RecordedWrite[])[] {
    const objects = new Map<string, Map<string, RecordedWrite>>();
    for (const line of readFileSync(this.#file, 'utf8').split('\n').slice(0, -1)) {
      const write = JSON.parse(line) as RecordedWrite;
      const text = keyText(write.key);
      const known = objects.get(text) ?? new Map<string, RecordedWrite>();
      objects.set(text, known.set(write.subresource ?? '', write));
    }
    return [...objects.values()].map((known) => [...known.values()]);
  }
}

/** A write for one version is for the version that the object has now; where that is not known, for any. */
function atVersion(patch: Patch, written: KubernetesObject | undefined): Patch {
  const metadata = patch.type === 'json' ? undefined : patch.body['metadata'];
  if (patch.type === 'json' || !isJsonObject(metadata) || metadata['resourceVersion'] === undefined) {
    return patch;
  }
  const { resourceVersion: _former, ...others } = metadata;
  const version = written?.metadata.resourceVersion;
  return {
    ...patch,
    body: { ...patch.body, metadata: { ...others, ...(version === undefined ? {} : { resourceVersion: version }) } },
  };
}
