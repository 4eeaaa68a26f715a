// Figures of the corpus that need no build, and one guest as `npm run conformance -- modules` judges it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ROOT, run } from '../../cli/command.ts';
import { FIGURES_PAGE, readFigures, withFigures } from './figures.ts';
import { GUESTS } from './guests.ts';
import { moduleFigures } from './module-figures.ts';
import { OPTIMIZERS } from './optimizers.ts';

const FIGURES = readFigures();

describe('the figures of the corpus', () => {
  it('are those of the tables in docs/modules.md', () => {
    const page = readFileSync(FIGURES_PAGE, 'utf8');
    assert.equal(withFigures(page, FIGURES), page, 'run npm run conformance -- modules GUEST --write');
  });

  it('are those of the modules that are committed', () => {
    for (const { name, folder } of GUESTS.filter((guest) => guest.folder.startsWith('examples/'))) {
      const raw = FIGURES.builds.find(({ guest, optimizer }) => guest === name && optimizer === 'raw');
      const module = readFileSync(join(ROOT, folder, 'policy.wasm'));
      assert.deepEqual(raw?.figures, moduleFigures(module), `run npm run conformance -- modules ${name} --write`);
    }
  });

  it('are of all guests and optimizers, and of no build that V8 accepts and Portcullis does not', () => {
    const expected = GUESTS.flatMap(({ name, optimizers }) =>
      (optimizers ?? OPTIMIZERS.map((one) => one.name)).map((optimizer) => `${name} ${optimizer}`),
    );
    assert.deepEqual(
      FIGURES.builds.map(({ guest, optimizer }) => `${guest} ${optimizer}`),
      expected,
    );
    for (const { guest, optimizer, result } of FIGURES.builds) {
      assert.match(result, /^(?:decides|refused, as by V8)$/, `${guest} ${optimizer}`);
    }
    for (const { guest, result } of FIGURES.rollouts) {
      assert.equal(result, 'updated and rolled back', guest);
    }
  });
});

describe('npm run conformance -- modules', () => {
  it('judges a guest, and serves it', async () => {
    const args = ['assemblyscript', '--optimizer', 'raw'];
    const { code, stdout, stderr } = await run(process.execPath, [
      join(ROOT, 'test', 'conformance', 'main.ts'),
      'modules',
      ...args,
    ]);
    assert.equal(code, 0, `${stdout}${stderr}`);
    assert.match(
      stdout,
      /^assemblyscript +raw .* decides\nassemblyscript: memory after each revision \d+, \d+ MiB, updated and rolled back$/m,
    );
  });
});
