import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { PolicyStatus } from '../server/index.ts';
import { FilePolicySet } from './policy-set.ts';

describe('FilePolicySet', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-set-'));
  const file = join(folder, 'policies.yml');
  after(() => rmSync(folder, { recursive: true }));

  /** Reads the file as a server does, and says so. */
  class ReadingServer {
    reads = 0;
    policies: Record<string, unknown> = {};
    readPolicies(): Promise<void> {
      this.reads += 1;
      this.policies = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
      return Promise.resolve();
    }
    policy(id: string): PolicyStatus | undefined {
      return id in this.policies ? ({ id } as PolicyStatus) : undefined;
    }
  }

  it('writes what is wanted, and tells of which generation the server was told', async () => {
    const server = new ReadingServer();
    const set = new FilePolicySet(file, server);
    assert.equal(set.get('a'), undefined);
    await set.put({ id: 'a', entry: { module: 'x' }, generation: 1 });
    assert.deepEqual(server.policies, { a: { module: 'x' } });
    assert.deepEqual(set.get('a'), { generation: 1, status: { id: 'a' } });
    await set.remove('a');
    assert.deepEqual(server.policies, {});
    assert.equal(set.get('a'), undefined);
  });

  it('writes once for many changes, and not at all for none', async () => {
    const server = new ReadingServer();
    const set = new FilePolicySet(file, server);
    await Promise.all(Array.from({ length: 100 }, (_, n) => set.put({ id: `p${n}`, entry: { n }, generation: 1 })));
    assert.equal(Object.keys(server.policies).length, 100);
    assert.ok(server.reads <= 2, `expected one or two reads, got ${server.reads}`);
    const { reads } = server;
    await set.put({ id: 'p1', entry: { n: 1 }, generation: 2 });
    await set.remove('unknown');
    assert.equal(server.reads, reads);
    assert.equal(set.get('p1')?.generation, 2);
  });

  it('takes what is wanted all at once, and nothing else', async () => {
    const server = new ReadingServer();
    const set = new FilePolicySet(file, server);
    await set.put({ id: 'old', entry: { n: 0 }, generation: 1 });
    await set.replace(['a', 'b'].map((id) => ({ id, entry: { id }, generation: 3 })));
    assert.deepEqual(server.policies, { a: { id: 'a' }, b: { id: 'b' } });
    assert.equal(set.get('b')?.generation, 3);
  });

  it('says nothing of a generation before the server has been told', async () => {
    const server = new ReadingServer();
    const set = new FilePolicySet(file, server);
    await set.put({ id: 'a', entry: { n: 1 }, generation: 1 });
    const changing = set.put({ id: 'a', entry: { n: 2 }, generation: 2 });
    assert.equal(set.get('a')?.generation, 1);
    await changing;
    assert.equal(set.get('a')?.generation, 2);
  });
});
