import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import { ApiError } from './api-error.ts';
import type { Cluster, ListOptions, WatchEvent, WatchOptions } from './cluster.ts';
import { Reflector } from './reflector.ts';

const PODS: ResourceType = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true };

const pod = (name: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, resourceVersion: '1' },
});

describe('a reflector whose handler takes pages', () => {
  it('reads the next part when the handler took the last one, and begins anew after a list that expired', async () => {
    const log: string[] = [];
    let lists = 0;
    const list = async (_type: unknown, { continue: token }: ListOptions = {}): Promise<unknown> => {
      lists += 1;
      log.push(`list ${token ?? 'from the start'}`);
      if (lists === 2) {
        throw new ApiError(410, 'Expired', 'too old');
      }
      const next = token === undefined ? { continue: 'second' } : {};
      return { metadata: { resourceVersion: '9', ...next }, items: [pod(token ?? 'first')] };
    };
    async function* watch(_type: unknown, options: WatchOptions = {}): AsyncGenerator<WatchEvent> {
      for (const name of ['a', 'b']) {
        log.push(`event ${name}`);
        yield { type: 'ADDED', object: pod(name) };
      }
      await new Promise((_, reject) => {
        options.signal?.addEventListener('abort', () => reject(options.signal?.reason as Error));
      });
    }
    const take = async (what: string): Promise<void> => {
      await sleep(20);
      log.push(`took ${what}`);
    };
    const reflector = new Reflector({
      cluster: { list, watch } as Pick<Cluster, 'list' | 'watch'>,
      type: PODS,
      pageSize: 1,
      random: () => 0,
      handler: {
        begin: () => log.push('begin'),
        page: (items) => take(items.map(({ metadata }) => metadata.name).join()),
        end: () => log.push('end'),
        apply: ({ object }) => take(object.metadata.name ?? ''),
      },
    });
    const stop = new AbortController();
    const running = reflector.start(stop.signal);
    try {
      while (log.at(-1) !== 'took b') {
        await sleep(5);
      }
    } finally {
      stop.abort();
      await running;
    }
    const expired = ['begin', 'list from the start', 'took first', 'list second'];
    const whole = [...expired, 'took second', 'end', 'event a', 'took a', 'event b', 'took b'];
    assert.deepEqual(log, [...expired, ...whole]);
    assert.equal(reflector.report.relists, 0);
  });
});
