// Runs the cases of the Cluster port against one implementation.
import { after, before, describe, it } from 'node:test';
import type { Cluster } from '../../src/cluster/index.ts';
import { ACCESS_CASES } from './cases-access.ts';
import { LIST_CASES } from './cases-lists.ts';
import { OBJECT_CASES } from './cases-objects.ts';
import { PATCH_CASES } from './cases-patches.ts';
import { TYPE_CASES } from './cases-types.ts';
import type { PortCase } from './cases.ts';
import { NAMESPACES } from './resource-types.ts';

/** A cluster for the cases. */
export interface PortTarget {
  readonly as: (user: 'admin' | 'alice' | 'bob') => Cluster;
  readonly close: () => Promise<void>;
}

const GROUPS: Readonly<Record<string, readonly PortCase[]>> = {
  objects: OBJECT_CASES,
  'lists and watches': LIST_CASES,
  patches: PATCH_CASES,
  kinds: TYPE_CASES,
  access: ACCESS_CASES,
};

/** Declares a test for each case. `kind` selects the deliberate differences. */
export function portSuite(
  name: string,
  kind: 'kubernetes' | 'embedded',
  open: () => Promise<PortTarget>,
  skip: string | false = false,
): void {
  describe(name, { skip }, () => {
    let target: PortTarget;
    let count = 0;
    const unique = (prefix: string): string => `${prefix}-${(count += 1)}`;
    before(async () => {
      target = await open();
    });
    after(() => target.close());
    for (const [group, cases] of Object.entries(GROUPS)) {
      describe(group, () => {
        for (const { name: behaviour, run, notOn } of cases) {
          const reason = notOn?.[kind];
          it(behaviour, reason === undefined ? {} : { skip: reason }, async () => {
            const namespace = unique('case');
            await target
              .as('admin')
              .create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace }, spec: {} });
            await run({ cluster: target.as('admin'), as: target.as, namespace, unique });
          });
        }
      });
    }
  });
}
