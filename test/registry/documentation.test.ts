// docs/registries.md: its files are valid, and its commands work one after the other. `commands.test.ts` runs those without network.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { load } from 'js-yaml';
import { parseVerification } from '../../src/modules/index.ts';
import { parseSources } from '../../src/modules/sources/index.ts';
import { type CommandResult, ROOT } from '../cli/command.ts';
import { StartedPortcullis, WITHOUT_AUDITOR } from '../cli/started.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { guest, moduleBytes, moduleVariant } from '../server/harness.ts';
import { LayoutFolder } from './layout-folder.ts';

const page = readFileSync(join(ROOT, 'docs', 'registries.md'), 'utf8');
const REFERENCE = 'ghcr.io/kubewarden/policies/pod-privileged:v1.0.8';

/** The content of the blocks of a language. */
function blocks(language: string, text: string = page): readonly string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, block = '']) => block);
}

function succeeded({ code, stdout, stderr }: CommandResult): string {
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

it('the files of docs/registries.md are valid', () => {
  const kinds = blocks('yaml').map((text) => {
    const document = load(text) as object;
    if ('apiVersion' in document && document.apiVersion === 'v1') {
      return Object.keys(parseVerification(text, 'verification.yml'));
    }
    return 'kind' in document ? document.kind : Object.keys(document).filter(() => parseSources(text, 'sources.yml'));
  });
  assert.deepEqual(kinds, [
    'ClusterAdmissionPolicy',
    ['allOf', 'anyOf'],
    ['proxies'],
    ['mirrors', 'source_authorities'],
    ['mirrors'],
  ]);
});

describe('the commands of docs/registries.md', { skip: skipWithoutCluster(), timeout: 300_000 }, () => {
  const layout = new LayoutFolder();
  let accept: Buffer;
  let started: StartedPortcullis;

  before(async () => {
    accept = await moduleBytes(guest('accept'));
    layout.put(REFERENCE, accept);
    started = await StartedPortcullis.start(WITHOUT_AUDITOR, '--sources-path', layout.sourcesFile('ghcr.io'));
  });
  after(async () => {
    await started?.[Symbol.asyncDispose]();
    layout[Symbol.dispose]();
  });

  it('show what a tag is pinned to, ask for what it has now, and lead back', async () => {
    const [manifest = ''] = blocks('yaml');
    succeeded(await started.kubectl(['apply', '-f', '-'], manifest));
    const serves = async (revision: number): Promise<void> =>
      await eventually(async () => {
        const path = ['-o', 'jsonpath={.status.phase} {.status.servingRevision}'];
        const status = await started.kubectl(['get', 'cap/no-privileged-pods', ...path]);
        assert.equal(status.stdout, `Active ${revision}`);
      });
    await serves(1);
    const tags = page.slice(page.indexOf('## Tags'), page.indexOf('## Signatures'));
    const [, get = '', output = ''] = /^\$ kubectl (.*)\n(.*)$/m.exec(tags) ?? [];
    const shown = succeeded(await started.kubectl(get.replaceAll("'", '').split(' ')));
    assert.equal(shown.replaceAll(/sha256:[0-9a-f]{64}/g, 'sha256:…'), output);

    layout.put(REFERENCE, moduleVariant(accept, 'moved'));
    const commands = blocks('sh', tags).flatMap((block) => block.trim().split('\n'));
    assert.equal(commands.length, 2);
    for (const [index, command] of commands.entries()) {
      const [program, ...args] = command.split(' ');
      assert.equal(program, 'portcullis');
      succeeded(await started.portcullis(args));
      await serves(index + 2);
    }
  });
});
