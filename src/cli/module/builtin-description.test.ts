import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, it } from 'node:test';
import { BuiltinSettings } from '../../engine/index.ts';
import { BUILTIN_MODULES } from '../../modules/index.ts';
import { BUILTIN_DESCRIPTIONS } from './builtin-description.ts';

describe('descriptions of builtin modules', () => {
  const settings = new BuiltinSettings();

  for (const name of BUILTIN_MODULES) {
    const { page, settings: described } = BUILTIN_DESCRIPTIONS[name];

    it(`name each setting that builtin:${name} reads`, () => {
      // The message about an unknown key lists the known ones.
      const [, known = ''] =
        settings
          .check(name, { 'no such setting': 1 })
          .problems.map(({ message }) => /expected one of (.*)$/.exec(message))
          .find((match) => match !== null) ?? [];
      assert.deepEqual(Object.keys(described).toSorted(), known.split(', ').toSorted());
    });

    it(`name the page of builtin:${name}`, () => {
      assert.ok(existsSync(new URL(`../../../${page}`, import.meta.url)), page);
    });
  }
});
