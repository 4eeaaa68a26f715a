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

  it('name objects with their type, by its short name where the width is limited', () => {
    const from = { kind: 'Table', columnDefinitions: [{ name: 'Name' }], rows: [{ cells: ['web'] }] } as const;
    const options = { ...OPTIONS, withNamespace: false, withLabels: false, withHeaders: false };
    const named = (shortNames: readonly string[], maxWidth?: number): string =>
      serverTableText(from, {
        ...options,
        type: { group: 'apps', kind: 'Deployment', shortNames },
        ...(maxWidth === undefined ? {} : { maxWidth }),
      });
    assert.equal(named(['deploy']), 'deployment.apps/web');
    assert.equal(named(['deploy'], 80), 'deploy/web');
    assert.equal(named([], 80), 'deployment.apps/web');
  });
});
