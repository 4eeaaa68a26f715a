// A list followed by a watch from its version yields the current state, whatever is written in between.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { WatchEvent } from '../../cluster/index.ts';
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import { servedKind } from '../testing/served-kind.ts';
import { EmbeddedCluster } from './embedded-cluster.ts';

const CONFIG_MAPS = servedKind('v1', 'ConfigMap') as ResourceType;

/** Labels of written objects. A watch selects `shown=yes`. */
const LABELS = [{ shown: 'yes' }, { shown: 'no' }] as const;

type Step =
  | { readonly type: 'write'; readonly name: string; readonly label: 0 | 1 }
  | { readonly type: 'delete'; readonly name: string }
  | { readonly type: 'watch'; readonly isSelective: boolean; readonly isPaged: boolean }
  | { readonly type: 'read'; readonly watch: number; readonly count: number };

const names = fc.constantFrom('a', 'b', 'c', 'd');
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant('write' as const), name: names, label: fc.constantFrom(0, 1) }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('delete' as const), name: names }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('watch' as const), isSelective: fc.boolean(), isPaged: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('read' as const),
      watch: fc.nat(3),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
);

/** A client that lists and then watches, and the state that it knows. */
class Follower {
  readonly #selector: { readonly labelSelector?: string };
  readonly #objects = new Map<string, KubernetesObject>();
  #version = 0;
  #events: AsyncIterator<WatchEvent> | undefined;
  readonly #end = new AbortController();

  constructor(isSelective: boolean) {
    this.#selector = isSelective ? { labelSelector: 'shown=yes' } : {};
  }

  async start({ admin }: EmbeddedCluster, isPaged: boolean, between: () => Promise<void>): Promise<void> {
    let token: string | undefined;
    do {
      const page = await admin.list(CONFIG_MAPS, {
        ...this.#selector,
        ...(isPaged ? { limit: 2 } : {}),
        ...(token === undefined ? {} : { continue: token }),
      });
      for (const object of page.items) {
        this.#objects.set(object.metadata.name ?? '', object);
      }
      token = page.metadata.continue;
      this.#version = Number(page.metadata.resourceVersion);
      await between();
    } while (token !== undefined);
    const watch = admin.watch(CONFIG_MAPS, {
      ...this.#selector,
      resourceVersion: String(this.#version),
      allowBookmarks: true,
      signal: this.#end.signal,
    });
    this.#events = watch[Symbol.asyncIterator]();
  }

  /** Receives at most so many events. It never waits, because a bookmark follows the last event. */
  async read(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const { value } = (await this.#events?.next()) ?? {};
      assert.ok(value !== undefined);
      const { type, object } = value as WatchEvent;
      const { name = '', resourceVersion } = object.metadata;
      if (type === 'BOOKMARK') {
        assert.ok(Number(resourceVersion) >= this.#version);
        this.#version = Number(resourceVersion);
        return;
      }
      assert.ok(Number(resourceVersion) > this.#version, 'each change is told once, in order');
      this.#version = Number(resourceVersion);
      assert.equal(type === 'ADDED', !this.#objects.has(name), 'only what was not there is added');
      if (type === 'DELETED') {
        this.#objects.delete(name);
      } else {
        this.#objects.set(name, object);
      }
    }
  }

  async requireEqual({ admin }: EmbeddedCluster): Promise<void> {
    await this.read(Infinity);
    const { items } = await admin.list(CONFIG_MAPS, this.#selector);
    const known = [...this.#objects.values()].sort((one, other) =>
      (one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1,
    );
    assert.deepEqual(known, items);
    this.#end.abort();
  }
}

test('a list and the watch that follows it report every object once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 40 }), async (script) => {
      await using cluster = await EmbeddedCluster.open({ bookmarkIntervalMs: 0 });
      const { admin } = cluster;
      let count = 0;
      const write = async (name: string, label: 0 | 1): Promise<void> => {
        const body = {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name, labels: LABELS[label] },
          data: { count: String((count += 1)) },
        };
        await admin.patch(
          CONFIG_MAPS,
          { namespace: 'default', name },
          { type: 'apply', body },
          { fieldManager: 'test' },
        );
      };
      const followers: Follower[] = [];
      for (const step of script) {
        switch (step.type) {
          case 'write':
            await write(step.name, step.label);
            break;
          case 'delete':
            await admin.delete(CONFIG_MAPS, { namespace: 'default', name: step.name }).catch(() => {});
            break;
          case 'watch': {
            const follower = new Follower(step.isSelective);
            await follower.start(cluster, step.isPaged, () => write('b', 0));
            followers.push(follower);
            break;
          }
          default:
            await followers[step.watch]?.read(step.count);
        }
      }
      for (const follower of followers) {
        await follower.requireEqual(cluster);
      }
    }),
    { numRuns: 60 },
  );
});

test('a watch without matching changes still sends bookmarks', async () => {
  await using cluster = await EmbeddedCluster.open({ bookmarkIntervalMs: 20 });
  const { admin } = cluster;
  const watch = admin.watch(CONFIG_MAPS, {
    labelSelector: 'shown=never',
    allowBookmarks: true,
    resourceVersion: String(cluster.revision),
  });
  const told = watch[Symbol.asyncIterator]().next();
  let bookmark: WatchEvent | undefined;
  const heard = told.then(({ value }) => (bookmark = value as WatchEvent));
  // Writes during the whole test.
  for (let index = 0; index < 5_000 && bookmark === undefined; index++) {
    await admin.create(CONFIG_MAPS, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'default', generateName: 'busy-' },
    });
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.notEqual(bookmark, undefined);
  await heard;
  assert.equal(bookmark?.type, 'BOOKMARK');
});
