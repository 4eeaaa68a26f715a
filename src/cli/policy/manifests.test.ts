import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { readManifests } from './manifests.ts';
import { readRequest } from './request-document.ts';

const folder = mkdtempSync(join(tmpdir(), 'manifests-'));
after(() => rmSync(folder, { recursive: true }));

function write(path: string, text: string): string {
  const file = join(folder, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
  return file;
}

describe('readManifests', () => {
  it('reads the files of folders, but for test files and hidden ones', async () => {
    write('many/b/two.json', '{"kind": "Two"}');
    write('many/a.yaml', 'kind: One\n---\nkind: More');
    write('many/portcullis-test.yml', 'cases: []');
    write('many/.hidden/c.yml', 'kind: Hidden');
    write('many/README.md', '# no manifest');
    const single = write('single.txt', 'kind: Single');
    const manifests = await readManifests([single, join(folder, 'many')]);
    assert.deepEqual(
      manifests.map(({ kind }) => kind),
      ['Single', 'One', 'More', 'Two'],
    );
  });

  it('reads the items of Lists, also of one kind, of which null is empty', async () => {
    const texts = [
      'kind: List\nitems: null',
      'kind: PodList\napiVersion: v1\nitems: [{metadata: {name: a}}, null]',
      'kind: List\nitems: [{kind: List, items: [{kind: B}]}]',
    ];
    assert.deepEqual(await readManifests([write('lists.yaml', texts.join('\n---\n'))]), [
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } },
      { kind: 'B' },
    ]);
  });

  for (const [text, message] of [
    ['kind: List\nitems: 1', /wrong\.yaml:1: items of a List: expected a list of objects, got a number$/],
    ['kind: List\nitems:\n  - kind: A\n  - 2', /wrong\.yaml:4: items\[1\] is not a manifest: expected a mapping/],
  ] as const) {
    it(`refuses ${JSON.stringify(text)}`, async () => {
      await assert.rejects(readManifests([write('wrong.yaml', text)]), { message });
    });
  }

  it('refuses a folder without manifests', async () => {
    write('none/README.md', '');
    await assert.rejects(
      readManifests([join(folder, 'none')]),
      /none contains no manifests: expected files that end in/,
    );
  });
});

describe('readRequest', () => {
  it('takes a review of v1beta1 as one of v1, with exact integers', async () => {
    const file = write(
      'review.yml',
      'apiVersion: admission.k8s.io/v1beta1\nkind: AdmissionReview\nrequest: {count: 9007199254740993}',
    );
    const text = Buffer.from(await readRequest(file, 'validate')).toString();
    assert.equal(
      text,
      '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"count":9007199254740993}}',
    );
  });

  it('passes on the text of a current review', async () => {
    const text = '{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"n": 1.0}}';
    assert.equal(Buffer.from(await readRequest(write('current.json', text), 'validate')).toString(), text);
  });
});
