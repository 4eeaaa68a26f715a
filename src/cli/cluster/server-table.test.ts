import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serverTableText } from './server-table.ts';

const OPTIONS = { wide: false, withNamespace: true, withLabels: true, withHeaders: true };

describe('tables of servers', () => {
  it('cannot move the cursor, whatever objects and kinds say', () => {
    const hostile = 'a\u001b[31m\u009b2Jb\n\u0007c';
    const text = serverTableText(
      {
        kind: 'Table',
        columnDefinitions: [{ name: hostile }],
        rows: [
          {
            cells: [hostile],
            object: { apiVersion: 'v1', kind: 'X', metadata: { namespace: hostile, labels: { [hostile]: hostile } } },
          },
        ],
      },
      OPTIONS,
    );
    assert.deepEqual(text.match(/\p{Cc}/gu), ['\n']);
  });
});
