import type { Library } from '../model/library.ts';
import { STRING } from '../model/type.ts';
import { scan } from './costs.ts';
import { describe, global } from './declare.ts';

/** Additional functions of mutating policies. */
export const JSON_PATCH_LIBRARY: Library = {
  name: 'JSON patches',
  since: 32,
  functions: [
    describe(
      'jsonpatch.escapeKey',
      'A key, escaped for the path of a JSON Patch: `~` as `~0`, `/` as `~1`.',
      ["jsonpatch.escapeKey('example.com/a~b')", "'example.com~1a~0b'"],
      [
        global(
          'string_jsonpatch_escapeKey_string',
          [STRING],
          STRING,
          (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1'),
          scan({ keepsSize: true }),
        ),
      ],
    ),
  ],
};
