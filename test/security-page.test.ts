// The table of SECURITY.md: its tests exist under these names, and its limits are those of the code.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Cells by row, without the head of the table. */
const rows = read('SECURITY.md')
  .split('### Who can reach and cost what')[1]
  ?.split('###')[0]
  ?.split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(1)
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, ...cells]) => cells);

const UNITS: Readonly<Record<string, number>> = { MiB: 1024 ** 2, KiB: 1024 };

/** `7 MiB`, `2 s` or `1,000`, in the unit of the constant. */
function valueOf(text: string, name: string): number {
  const [amount = '', unit = ''] = text.split(' ');
  const factor = unit === 's' && name.endsWith('_MS') ? 1_000 : (UNITS[unit] ?? 1);
  return Number(amount.replaceAll(',', '')) * factor;
}

/** The product of a constant's declaration, such as `7 * 1024 * 1024`. */
function constants(): ReadonlyMap<string, ReadonlySet<number>> {
  const found = new Map<string, Set<number>>();
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  for (const file of files.filter((one) => one.endsWith('.ts') && !one.endsWith('.test.ts'))) {
    for (const [, name = '', product = ''] of read(join('src', file)).matchAll(/const ([A-Z_]+) = ([\d_* ]+);/g)) {
      const value = product.split(/\*+/).reduce((all, factor) => all * Number(factor.replaceAll('_', '')), 1);
      found.set(name, (found.get(name) ?? new Set()).add(value));
    }
  }
  return found;
}

describe('the table of SECURITY.md', () => {
  it('names tests that exist', () => {
    assert.ok(rows !== undefined && rows.length >= 9);
    for (const [who = '', , , , tests = ''] of rows) {
      const references = [...tests.matchAll(/`([^`]+\.test\.ts)`((?:;? "[^"]+")+)/g)];
      assert.ok(references.length > 0, who);
      for (const [, file = '', titles = ''] of references) {
        const text = read(file);
        for (const [, title = ''] of titles.matchAll(/"([^"]+)"/g)) {
          assert.ok(text.includes(title), `${file} has no test "${title}" (${who})`);
        }
      }
    }
  });

  it('has the limits of the code', () => {
    const known = constants();
    const limits = (rows ?? []).flatMap(([, , , cell = '']) => [...cell.matchAll(/`([A-Z_]+)` \(([^)]+)\)/g)]);
    assert.ok(limits.length > 20);
    for (const [, name = '', text = ''] of limits) {
      const values = known.get(name);
      assert.ok(
        values?.has(valueOf(text, name)),
        `${name} (${text}) is ${[...(values ?? [])].join(' or ')} in the code`,
      );
    }
  });
});
