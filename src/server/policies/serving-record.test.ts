import assert from 'node:assert/strict';
import { mkdir, mkdtempDisposable, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parsePolicies, definitionHash, settingsHash } from '../../engine/index.ts';
import type { LogEntry } from '../../log/index.ts';
import { type PinnedPolicy, ServingRecord } from './serving-record.ts';

const text = `
single:
  module: file:///a.wasm
  settings: {labels: [a, {b: null}], weight: 1.5}
group:
  expression: x()
  message: refused
  policies: {x: {module: file:///b.wasm}}
`;
const policies: PinnedPolicy[] = parsePolicies(text, 'policies.yml').policies.map((definition) => ({
  definition,
  hash: definitionHash(definition),
  settingsHash: settingsHash(definition),
  digests: { 'file:///a.wasm': `sha256:${'0'.repeat(64)}` },
  since: '2026-01-01T00:00:00.000Z',
  ...(definition.id === 'group' ? { revision: { name: 'group-3', uid: 'u', number: 3 } } : {}),
}));

const FILE = { file: 'policies.yml' };

/** Records of both sources. */
const readAll = (record: ServingRecord): Map<string, PinnedPolicy> =>
  new Map([...record.read(FILE), ...record.read('cluster')]);

async function setUp(): Promise<{ folder: string; log: LogEntry[]; open: () => ServingRecord } & AsyncDisposable> {
  const temporary = await mkdtempDisposable(join(tmpdir(), 'portcullis-record-'));
  const log: LogEntry[] = [];
  const folder = join(temporary.path, 'data');
  return {
    folder,
    log,
    open: () => new ServingRecord(folder, (entry) => log.push(entry)),
    [Symbol.asyncDispose]: () => temporary.remove(),
  };
}

describe('the record of what serves', () => {
  it('returns what was written, with permissions for its owner only', async () => {
    await using at = await setUp();
    const record = at.open();
    assert.deepEqual(readAll(record), new Map());
    await record.flush(policies);
    assert.deepEqual(
      [...readAll(at.open())],
      policies.map((policy) => [policy.definition.id, policy]),
    );
    assert.equal((await stat(join(at.folder, 'serving.json'))).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(at.folder), ['serving.json']);
    assert.deepEqual(at.log, []);
  });

  it('omits policies of another policies file', async () => {
    await using at = await setUp();
    const record = at.open();
    record.read({ file: 'one.yml' });
    await record.flush(policies);
    assert.deepEqual([...at.open().read({ file: './one.yml' }).keys()], ['single']);
    assert.deepEqual([...at.open().read({ file: 'two.yml' }).keys()], []);
  });

  it('omits policies of the other source', async () => {
    await using at = await setUp();
    await at.open().flush(policies);
    assert.deepEqual([...at.open().read(FILE).keys()], ['single']);
    assert.deepEqual([...at.open().read('cluster').keys()], ['group']);
  });

  it('combines changes into one write of the last one', async () => {
    await using at = await setUp();
    const record = at.open();
    let calls = 0;
    const current = (): PinnedPolicy[] => {
      calls += 1;
      return policies;
    };
    record.changed(() => assert.fail('only the last function is called'));
    await record.flush([]);
    for (let change = 0; change < 10; change += 1) {
      record.changed(current);
    }
    while (readAll(at.open()).size === 0) {
      await sleep(10);
    }
    assert.equal(calls, 1);
  });

  it('contains the last of two concurrent writes', async () => {
    await using at = await setUp();
    const record = at.open();
    await Promise.all([record.flush(policies), record.flush([]), record.flush(policies.slice(0, 1))]);
    assert.deepEqual([...readAll(at.open()).keys()], ['single']);
  });

  it('of another version of the product has no revision', async () => {
    await using at = await setUp();
    await at.open().flush(policies);
    const file = join(at.folder, 'serving.json');
    const content = JSON.parse(await readFile(file, 'utf8')) as { version: string };
    await writeFile(file, JSON.stringify({ ...content, version: `${content.version}-next` }));
    const read = readAll(at.open());
    assert.deepEqual(read.get('single'), policies[0], 'a file has no revisions');
    const { revision, ...rest } = read.get('group') ?? assert.fail('it serves on');
    const { revision: written, ...expected } = policies[1] ?? assert.fail();
    assert.deepEqual(rest, expected);
    assert.notEqual(revision?.uid, written?.uid);
    assert.deepEqual(at.log, []);
  });

  for (const [what, content] of Object.entries({
    'is cut off': '{"format":1,"policies":[',
    'is empty': '',
    'is of another format': JSON.stringify({ format: 999, policies: [] }),
    'has no policies': JSON.stringify({ format: 2 }),
    'is null': 'null',
    'has a policy without a definition': JSON.stringify({ format: 2, policies: [{ digests: {}, since: '' }] }),
    'has a policy that is null': JSON.stringify({ format: 2, policies: [null] }),
    'has a definition of no kind': JSON.stringify({
      format: 2,
      policies: [{ definition: { id: 'x' }, hash: 'h', settingsHash: 's', digests: {}, since: '2026-01-01T00:00:00Z' }],
    }),
    'has a revision without a number': JSON.stringify({
      format: 2,
      policies: [{ ...policies[0], revision: { name: 'a-1', uid: 'u' } }],
    }),
    'has digests that are null': JSON.stringify({ format: 2, policies: [{ ...policies[0], digests: null }] }),
  })) {
    it(`that ${what} is moved aside and logged`, async () => {
      await using at = await setUp();
      await mkdir(at.folder);
      await writeFile(join(at.folder, 'serving.json'), content);
      assert.deepEqual(readAll(at.open()), new Map());
      assert.equal(await readFile(join(at.folder, 'serving.json.unreadable'), 'utf8'), content);
      assert.equal(at.log[0]?.level, 'warn');
      assert.deepEqual(readAll(at.open()), new Map());
      assert.equal(at.log.length, 1, 'it is logged once');
    });
  }

  it('that cannot be written is only logged', async () => {
    await using at = await setUp();
    const record = at.open();
    await mkdir(join(at.folder, 'serving.json'));
    await record.flush(policies);
    assert.equal(at.log[0]?.level, 'error');
    assert.match(at.log[0].message, /cannot keep a record/);
    assert.deepEqual(await readdir(at.folder), ['serving.json']);
  });
});
