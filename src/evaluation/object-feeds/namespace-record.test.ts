import assert from 'node:assert/strict';
import { mkdir, mkdtempDisposable, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogEntry } from '../../log/index.ts';
import { type NamespaceEntry, NamespaceRecord } from './namespace-record.ts';

const namespaces: NamespaceEntry[] = [
  ['shop', { env: 'prod', team: 'a' }],
  ['office', {}],
];

async function setUp(): Promise<
  { folder: string; file: string; log: LogEntry[]; open: (maxBytes?: number) => NamespaceRecord } & AsyncDisposable
> {
  const temporary = await mkdtempDisposable(join(tmpdir(), 'portcullis-namespaces-'));
  const log: LogEntry[] = [];
  const folder = join(temporary.path, 'data');
  return {
    folder,
    file: join(folder, 'namespaces.json'),
    log,
    open: (maxBytes) => new NamespaceRecord(folder, (entry) => log.push(entry), maxBytes),
    [Symbol.asyncDispose]: () => temporary.remove(),
  };
}

describe('the record of namespaces', () => {
  it('returns what was written, with permissions for its owner only', async () => {
    await using at = await setUp();
    const record = at.open();
    assert.deepEqual(record.read(), new Map());
    record.changed(() => namespaces);
    await record.flush();
    assert.deepEqual(at.open().read(), new Map(namespaces));
    assert.equal((await stat(at.file)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(at.folder), ['namespaces.json']);
    assert.deepEqual(at.log, []);
  });

  it('combines changes into one write, and writes nothing without changes', async () => {
    await using at = await setUp();
    const record = at.open();
    await record.flush();
    assert.deepEqual(await readdir(at.folder), []);
    let calls = 0;
    for (let change = 0; change < 10; change += 1) {
      record.changed(() => {
        calls += 1;
        return namespaces;
      });
    }
    while (at.open().read().size === 0) {
      await sleep(10);
    }
    await record.flush();
    assert.equal(calls, 1);
  });

  it('contains the namespaces that fit, logs once that some do not, and can be read again', async () => {
    await using at = await setUp();
    const many = Array.from({ length: 100 }, (_, index): NamespaceEntry => [`n-${index}`, { é: 'x'.repeat(index) }]);
    const record = at.open(2_000);
    for (let round = 0; round < 2; round += 1) {
      record.changed(() => many);
      await record.flush();
    }
    assert.ok((await stat(at.file)).size <= 2_000);
    const kept = at.open(2_000).read();
    assert.ok(kept.size > 20, String(kept.size));
    assert.deepEqual(kept, new Map(many.filter(([name]) => kept.has(name))));
    assert.deepEqual(
      at.log.map(({ level, fields }) => [level, fields['leftOut']]),
      [['warn', 100 - kept.size]],
    );
  });

  for (const [what, content] of Object.entries({
    'is cut off': '{"format":1,"namespaces":[',
    'is of another format': JSON.stringify({ format: 999, namespaces: [] }),
    'has no namespaces': JSON.stringify({ format: 1 }),
    'is null': 'null',
    'has a namespace without labels': JSON.stringify({ format: 1, namespaces: [['shop']] }),
    'has labels that are null': JSON.stringify({ format: 1, namespaces: [['shop', null]] }),
    'has a label that is no text': JSON.stringify({ format: 1, namespaces: [['shop', { env: 1 }]] }),
    'has a name that is no text': JSON.stringify({ format: 1, namespaces: [[1, {}]] }),
    'is too long': JSON.stringify({ format: 1, namespaces: [['shop', { env: 'x'.repeat(2_000) }]] }),
  })) {
    it(`that ${what} is moved aside and logged`, async () => {
      await using at = await setUp();
      await mkdir(at.folder);
      await writeFile(at.file, content);
      assert.deepEqual(at.open(2_000).read(), new Map());
      assert.equal(await readFile(`${at.file}.unreadable`, 'utf8'), content);
      assert.deepEqual(at.open(2_000).read(), new Map());
      assert.deepEqual(
        at.log.map(({ level }) => level),
        ['warn'],
        'it is logged once',
      );
    });
  }
});
