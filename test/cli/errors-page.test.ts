// docs/errors.md lists every error code under its heading, and no others.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { EXIT } from '../../src/cli/errors.ts';
import { ROOT } from './command.ts';

const page = readFileSync(join(ROOT, 'docs', 'errors.md'), 'utf8');

/** The codes in the first column of the table under a heading. */
function documented(heading: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  assert.ok(section, `docs/errors.md has no heading "${heading}"`);
  return [...section.matchAll(/^\| `([^`]+)`[^|]*\| [^|]/gm)].map(([, code = '']) => code);
}

/** The members of a union of texts. */
function union(file: string, name: string): string[] {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const body = new RegExp(`^export type ${name} =\n(.*?);$`, 'ms').exec(source)?.[1];
  assert.ok(body, `${file} has no union ${name}`);
  const codes = [...body.matchAll(/^\s*\| '([^']+)'/gm)].map(([, code = '']) => code);
  assert.ok(codes.length > 0, `${name} of ${file} has no codes`);
  return codes;
}

/** The headings for the codes of each folder. A new folder with codes needs a heading. */
const HEADINGS: Readonly<Record<string, { readonly heading: string; readonly type: string } | undefined>> = {
  cel: { heading: 'CEL expressions', type: 'CelErrorCode' },
  cluster: { heading: 'Clusters', type: 'ClusterErrorCode' },
  evaluation: { heading: 'Loading and evaluation as a whole', type: 'EvaluationErrorCode' },
  engine: { heading: 'The policies file and evaluation', type: 'EngineErrorCode' },
  modules: { heading: 'Modules', type: 'ModuleErrorCode' },
  runtime: { heading: 'Controllers', type: 'RuntimeErrorCode' },
  go: { heading: 'Templates', type: 'TemplateErrorCode' },
  https: { heading: 'Listening', type: 'HttpsErrorCode' },
  wasm: { heading: 'WebAssembly', type: 'WasmErrorCode' },
};

describe('docs/errors.md', () => {
  for (const file of globSync('src/*/errors.ts', { cwd: ROOT }).toSorted()) {
    const folder = basename(dirname(file));
    if (folder === 'cli') {
      continue;
    }
    it(`names the codes of src/${folder}`, () => {
      const known = HEADINGS[folder];
      assert.ok(known, `give the codes of src/${folder}/errors.ts a heading in docs/errors.md, and name it here`);
      assert.deepEqual(documented(known.heading).toSorted(), union(file, known.type).toSorted());
    });
  }

  it('names the problems of entries of the policies file', () => {
    const codes = union('src/engine/definition/policy-reader.ts', 'PolicyProblemCode');
    assert.deepEqual(documented('An entry of the policies file').toSorted(), codes.toSorted());
  });

  it('names the reasons of phases', () => {
    const reasons = union('src/evaluation/loading/policy-reason.ts', 'PolicyReason');
    assert.deepEqual(documented("Reasons of a policy's phase").toSorted(), reasons.toSorted());
  });

  it('names the HTTP statuses of refused requests', () => {
    const used = [
      'src/server/admission/admission-endpoint.ts',
      'src/https/http-body.ts',
      'src/server/admission/review-answer.ts',
    ]
      .map((file) => readFileSync(join(ROOT, file), 'utf8'))
      .flatMap((source) => [
        ...source.matchAll(/(?:new RequestRefused\(|refuse\(|errorAnswer\(|^  (?:'[a-z-]+'): |\? )(\d{3})\b/gm),
      ])
      .map(([, status = '']) => status);
    assert.ok(used.length >= 5);
    const statuses = new Set(documented('HTTP'));
    assert.deepEqual(
      used.filter((status) => !statuses.has(status)),
      [],
    );
  });

  it('names the exit codes', () => {
    const codes = documented('The command line');
    for (const code of Object.values(EXIT)) {
      assert.ok(codes.includes(String(code)), `exit code ${code}`);
    }
  });
});
