// One case per fault, on a scripted cluster; test/cluster-port/reflector-faults.test.ts runs faults on a real one.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import { errorText } from '../values/index.ts';
import { ApiError } from './api-error.ts';
import type { Cluster, ListOptions, WatchEvent, WatchOptions } from './cluster.ts';
import { ClusterError } from './errors.ts';
import { Reflector } from './reflector.ts';
import type { ReflectorOptions } from './reflector.ts';

const PODS: ResourceType = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true };

const pod = (name: string, resourceVersion: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, resourceVersion },
});
const event = (type: WatchEvent['type'], name: string, version: string): WatchEvent => ({
  type,
  object: pod(name, version),
});

/** The events of a watch, and its end: with an error, normally, or none. */
interface ScriptedWatch {
  readonly events?: readonly WatchEvent[];
  readonly end?: Error | 'end';
}

interface Scene {
  readonly reflector: Reflector;
  readonly stop: AbortController;
  readonly lists: ListOptions[];
  readonly watches: WatchOptions[];
  readonly log: string[];
  readonly errors: string[];
  /** Waits until a condition holds. */
  until(condition: () => boolean): Promise<void>;
}

function play(
  context: TestContext,
  script: {
    readonly lists?: readonly (readonly KubernetesObject[] | Error)[];
    readonly watches?: readonly ScriptedWatch[];
  },
  options: Partial<ReflectorOptions<KubernetesObject>> = {},
): Scene {
  const scene = {
    lists: [] as ListOptions[],
    watches: [] as WatchOptions[],
    log: [] as string[],
    errors: [] as string[],
  };
  const list = async (_type: unknown, options: ListOptions = {}): Promise<unknown> => {
    scene.lists.push(options);
    const answer = script.lists?.[scene.lists.length - 1] ?? [];
    return answer instanceof Error
      ? await Promise.reject(answer)
      : { metadata: { resourceVersion: String(scene.lists.length * 100) }, items: answer };
  };
  async function* watch(_type: unknown, options: WatchOptions = {}): AsyncGenerator<WatchEvent> {
    scene.watches.push(options);
    const { events = [], end } = script.watches?.[scene.watches.length - 1] ?? {};
    yield* events;
    if (end instanceof Error) {
      throw end;
    }
    if (end === undefined) {
      await new Promise((_, reject) => {
        options.signal?.addEventListener('abort', () => reject(options.signal?.reason as Error));
      });
    }
  }
  const stop = new AbortController();
  const reflector = new Reflector({
    cluster: { list, watch } as Pick<Cluster, 'list' | 'watch'>,
    type: PODS,
    handler: {
      replace: (items, version) =>
        scene.log.push(`replace ${items.map(({ metadata }) => metadata.name).join(',')} @${version}`),
      apply: ({ type, object }) => scene.log.push(`${type} ${object.metadata.name}`),
    },
    onError: (error, during) => scene.errors.push(`${during}: ${errorText(error)}`),
    random: () => 0,
    ...options,
  });
  const running = reflector.start(stop.signal);
  context.after(async () => {
    stop.abort();
    await running;
  });
  const until = async (condition: () => boolean): Promise<void> => {
    const deadline = performance.now() + 5_000;
    while (!condition()) {
      assert.ok(performance.now() < deadline, `not so within 5 s: ${condition.toString()}`);
      await sleep(2);
    }
  };
  return { ...scene, reflector, stop, until };
}

describe('Reflector', () => {
  it('lists, then watches from that version', async (context) => {
    const scene = play(
      context,
      {
        lists: [[pod('a', '1')]],
        watches: [{ events: [event('ADDED', 'b', '101'), event('BOOKMARK', '', '120'), event('DELETED', 'a', '130')] }],
      },
      { namespace: 'shop', labelSelector: 'x=y', pageSize: 7 },
    );
    assert.equal(scene.reflector.report.synced, false);
    await scene.reflector.synced;
    await scene.until(() => scene.log.length === 3);
    assert.deepEqual(scene.log, ['replace a @100', 'ADDED b', 'DELETED a']);
    const { signal: _listSignal, ...listed } = scene.lists[0] ?? {};
    assert.deepEqual(listed, { namespace: 'shop', labelSelector: 'x=y', limit: 7 });
    const { signal: _watchSignal, ...watched } = scene.watches[0] ?? {};
    assert.deepEqual(watched, {
      namespace: 'shop',
      labelSelector: 'x=y',
      resourceVersion: '100',
      allowBookmarks: true,
      timeoutSeconds: 300,
    });
    const { lagMs, lastError, ...report } = scene.reflector.report;
    assert.ok(lagMs !== undefined && lagMs < 5_000);
    assert.equal(lastError, undefined);
    assert.deepEqual(report, {
      state: 'watching',
      synced: true,
      resourceVersion: '130',
      events: 2,
      relists: 0,
      reconnects: 0,
      failures: 0,
      handlerErrors: 0,
    });
  });

  for (const [name, end] of [
    ['the connection breaks', new ClusterError('unreachable', 'cut')],
    ['the server fails', new ApiError(500, 'InternalError', 'broken')],
    ['the server refuses for now', new ApiError(403, 'Forbidden', 'not yet')],
    ['the stream ends at once', 'end'],
  ] as const) {
    it(`resumes from the last version when ${name}, without a new list`, async (context) => {
      const first = { events: [event('ADDED', 'a', '101'), event('BOOKMARK', '', '110')], end };
      const scene = play(context, { watches: [first, { end }, { events: [event('ADDED', 'b', '111')] }] });
      await scene.until(() => scene.log.length === 3);
      assert.deepEqual(scene.log, ['replace  @100', 'ADDED a', 'ADDED b']);
      assert.deepEqual(
        scene.watches.map(({ resourceVersion }) => resourceVersion),
        ['100', '110', '110'],
      );
      const { relists, reconnects, failures, lastError } = scene.reflector.report;
      assert.deepEqual([relists, reconnects, failures, lastError], [0, 2, end === 'end' ? 0 : 2, undefined]);
      assert.equal(scene.lists.length, 1);
    });
  }

  it('lists again when the version has expired', async (context) => {
    const scene = play(context, {
      lists: [[pod('a', '1')], [pod('b', '2')]],
      watches: [
        { end: ApiError.expired('too old resource version: 100 (150)') },
        { events: [event('ADDED', 'c', '201')] },
      ],
    });
    await scene.until(() => scene.log.length === 3);
    assert.deepEqual(scene.log, ['replace a @100', 'replace b @200', 'ADDED c']);
    assert.equal(scene.watches[1]?.resourceVersion, '200');
    assert.equal(scene.reflector.report.relists, 1);
  });

  it('retries the first list until it succeeds', async (context) => {
    const down = new ClusterError('unreachable', 'down');
    const scene = play(context, { lists: [down, down, [pod('a', '1')]] });
    await scene.until(() => scene.reflector.report.state === 'waiting');
    assert.equal(scene.reflector.report.lastError, down);
    await scene.reflector.synced;
    assert.deepEqual(scene.errors, ['list: down', 'list: down']);
    assert.deepEqual(scene.log, ['replace a @300']);
    assert.equal(scene.reflector.report.lastError, undefined);
  });

  it('replaces a watch that is silent for too long', async (context) => {
    const scene = play(context, { watches: [{}, { events: [event('ADDED', 'a', '101')] }] }, { silenceLimitMs: 30 });
    await scene.until(() => scene.log.length === 2);
    assert.match(scene.errors[0] ?? '', /^watch: the watch was silent for 30 ms/);
    assert.equal(scene.lists.length, 1);
  });

  it('waits as long as Retry-After', async (context) => {
    const busy = new ApiError(429, 'TooManyRequests', 'later', { retryAfterSeconds: 0.4 });
    const scene = play(context, { watches: [{ end: busy }, {}] });
    const startedAt = performance.now();
    await scene.until(() => scene.watches.length === 2);
    assert.ok(performance.now() - startedAt > 350, 'expected the requested delay');
  });

  it('survives a handler and an error callback that throw', async (context) => {
    const seen: string[] = [];
    const scene = play(
      context,
      { watches: [{ events: [event('ADDED', 'a', '101'), event('ADDED', 'b', '102')] }] },
      {
        handler: {
          replace: () => {
            throw new Error('no replace');
          },
          apply: ({ object }) => {
            seen.push(object.metadata.name ?? '');
            throw new Error('no apply');
          },
        },
        onError: (error, during) => {
          seen.push(during);
          throw error;
        },
      },
    );
    await scene.until(() => seen.length === 5);
    assert.deepEqual(seen, ['handler', 'a', 'handler', 'b', 'handler']);
    assert.equal(scene.reflector.report.handlerErrors, 3);
    assert.equal(scene.reflector.report.state, 'watching');
  });

  it('stops in every state, and rejects synced if it was not', async (context) => {
    const scene = play(context, { lists: [new ClusterError('unreachable', 'down')] });
    await scene.until(() => scene.reflector.report.state === 'waiting');
    scene.stop.abort(new Error('enough'));
    await assert.rejects(scene.reflector.synced, /enough/);
    assert.equal(scene.reflector.report.state, 'stopped');
  });
});
