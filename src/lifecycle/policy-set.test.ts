import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
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
    declared: Record<string, unknown> = {};
    /** Why it takes no file. */
    error: string | null = null;
    readPolicies(): Promise<void> {
      this.reads += 1;
      if (this.error === null) {
        this.declared = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
      }
      return Promise.resolve();
    }
    policy(id: string): PolicyStatus | undefined {
      return id in this.declared ? ({ id } as PolicyStatus) : undefined;
    }
    policies(): { source: { error: string | null } } {
      return { source: { error: this.error } };
    }
  }

  it('writes what is wanted, and tells of which generation the server was told', async () => {
    const server = new ReadingServer();
    const set = new FilePolicySet(file, server);
    assert.equal(set.get('a'), undefined);
    await set.put({ id: 'a', entry: { module: 'x' }, generation: 1 });
    assert.deepEqual(server.declared, { a: { module: 'x' } });
    assert.deepEqual(set.get('a'), { generation: 1, status: { id: 'a' } });
    await set.remove('a');
    assert.deepEqual(server.declared, {});
    assert.equal(set.get('a'), undefined);
  });

  it('writes once for many changes, and not at all for none', async () => {
    const server = new ReadingServer();
    const set = new FilePolicySet(file, server);
    await Promise.all(Array.from({ length: 100 }, (_, n) => set.put({ id: `p${n}`, entry: { n }, generation: 1 })));
    assert.equal(Object.keys(server.declared).length, 100);
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
    assert.deepEqual(server.declared, { a: { id: 'a' }, b: { id: 'b' } });
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

  it('fails when the file cannot be written or is not taken, says nothing of what was not told, and tries again', async () => {
    const server = new ReadingServer();
    const set = new FilePolicySet(file, server);
    await set.put({ id: 'a', entry: { n: 1 }, generation: 1 });
    // A folder in the place of the file that is written first, as good as a full disk.
    mkdirSync(`${file}.new`);
    await assert.rejects(set.put({ id: 'a', entry: { n: 2 }, generation: 2 }), /EISDIR/);
    await assert.rejects(set.remove('a'), /EISDIR/);
    assert.deepEqual(server.declared, { a: { n: 1 } });
    assert.equal(set.get('a')?.generation, 1);
    rmdirSync(`${file}.new`);
    await set.remove('a');
    assert.deepEqual(server.declared, {});

    server.error = 'malformed';
    await assert.rejects(set.put({ id: 'b', entry: {}, generation: 1 }), /malformed/);
    assert.equal(set.get('b'), undefined);
    server.error = null;
    await set.put({ id: 'b', entry: {}, generation: 1 });
    assert.equal(set.get('b')?.generation, 1);
  });

  it('has told the last of many changes that overlap when each of them ends', async () => {
    const server = new ReadingServer();
    const set = new FilePolicySet(file, server);
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        await set.put({ id: 'a', entry: { n }, generation: n });
        assert.ok((set.get('a')?.generation ?? -1) >= n);
        await (n % 3 === 0 ? set.remove(`p${n - 1}`) : set.put({ id: `p${n}`, entry: { n }, generation: 1 }));
      }),
    );
    assert.deepEqual(server.declared['a'], { n: 49 });
    assert.equal(set.get('a')?.generation, 49);
  });
});
