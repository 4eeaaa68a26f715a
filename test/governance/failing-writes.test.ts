// Writes of the controllers that an API server refuses again and again: retried with growing delays, and visible to users.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { ApiError, type ApiErrorReason } from '../../src/cluster/index.ts';
import type { JsonObject } from '../../src/resources/index.ts';
import { until } from '../server/harness.ts';
import { GovernanceLab, withWrites } from './governance-lab.ts';

const GROUP = 'policy.open-cluster-management.io';

function policy(kind: 'ConfigurationPolicy' | 'CertificatePolicy', name: string, label = 'first'): JsonObject {
  const configuration = {
    'object-templates': [
      {
        complianceType: 'musthave',
        objectDefinition: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: label, namespace: 'default' } },
      },
    ],
  };
  const spec = kind === 'ConfigurationPolicy' ? configuration : { namespaceSelector: { include: ['default'] } };
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace: 'policies', labels: { label } },
    spec: {
      disabled: false,
      'policy-templates': [
        {
          objectDefinition: {
            apiVersion: `${GROUP}/v1`,
            kind,
            metadata: { name },
            spec: { remediationAction: 'enforce', severity: 'low', ...spec },
          },
        },
      ],
    },
  };
}

const REASONS: Readonly<Record<number, ApiErrorReason>> = {
  403: 'Forbidden',
  409: 'Conflict',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
};

/** Writes of each controller: the copy, its template, and the statuses. */
const WRITES = [
  'create policies',
  'create configurationpolicies',
  'status of configurationpolicies',
  'status of certificatepolicies',
  'status of policies',
] as const;

/** Attempts that delays of 5 ms, doubled each time, allow in the time of a test, several times over. */
const MOST_ATTEMPTS = 60;

describe('a write that is refused again and again', { concurrency: true }, () => {
  for (const code of [403, 409, 422, 429, 500]) {
    it(`with ${code} is retried with growing delays, is visible, and done when it is accepted`, async () => {
      let refused: string | undefined;
      let attempts = 0;
      const lines: string[] = [];
      await using lab = await GovernanceLab.start({
        log: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
        through: (cluster) => {
          const counted = withWrites(cluster, async (send, verb) => {
            if (verb === refused) {
              attempts += 1;
              throw new ApiError(code, REASONS[code] ?? 'Unknown', `the write is refused with ${code}`);
            }
            return await send();
          });
          return {
            ...counted,
            update: async (type, object, options) => {
              if (options?.subresource === 'status' && `status of ${type.resource}` === refused) {
                attempts += 1;
                throw new ApiError(code, REASONS[code] ?? 'Unknown', `the write is refused with ${code}`);
              }
              return await counted.update(type, object, options);
            },
          };
        },
      });
      for (const [index, write] of WRITES.entries()) {
        attempts = 0;
        lines.length = 0;
        refused = write;
        const name = `p-${index}`;
        const kind = write.includes('certificate') ? 'CertificatePolicy' : 'ConfigurationPolicy';
        await lab.apply(policy(kind, name));
        await until(
          () => Promise.resolve(attempts >= 6),
          () => `6 attempts of ${write}, last ${attempts}`,
        );
        const shown = async (): Promise<boolean> => {
          const objects = await Promise.all([
            lab.policy(`policies/${name}`),
            lab.policy(`local-cluster/policies.${name}`),
          ]);
          return `${JSON.stringify(objects)} ${lines.join(' ')}`.includes(`refused with ${code}`);
        };
        // A conflict is expected for a moment, so that it is in a status only, which cannot be written here.
        if (!(code === 409 && write.startsWith('status'))) {
          await until(shown, () => `${write} refused with ${code} to be visible`);
        }
        await new Promise((resolve) => setTimeout(resolve, 300));
        assert.ok(attempts <= MOST_ATTEMPTS, `${attempts} attempts of ${write}`);
        refused = undefined;
        await lab.reaches(`policies/${name}`, 'Compliant');
      }
    });
  }
});

describe('a copy that another writer keeps changing back', () => {
  it('is restored with growing delays, which the log says', async () => {
    const lines: string[] = [];
    let updates = 0;
    await using lab = await GovernanceLab.start({
      log: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
      through: (cluster) => ({
        ...cluster,
        discovery: cluster.discovery,
        get: (...parameters) => cluster.get(...parameters),
        list: (...parameters) => cluster.list(...parameters),
        watch: (...parameters) => cluster.watch(...parameters),
        create: (...parameters) => cluster.create(...parameters),
        patch: (...parameters) => cluster.patch(...parameters),
        delete: (...parameters) => cluster.delete(...parameters),
        deleteCollection: (...parameters) => cluster.deleteCollection(...parameters),
        update: async (type, object, options) => {
          const written = await cluster.update(type, object, options);
          if (type.kind === 'Policy' && options?.subresource === undefined) {
            updates += 1;
            await lab.merge({ kind: 'Policy', name: 'local-cluster/policies.fought' }, { spec: { disabled: true } });
          }
          return written;
        },
      }),
    });
    await lab.apply(policy('ConfigurationPolicy', 'fought'));
    await lab.reaches('policies/fought', 'Compliant');
    await lab.merge({ kind: 'Policy', name: 'local-cluster/policies.fought' }, { spec: { disabled: true } });
    await until(
      () => Promise.resolve(lines.some((line) => line.includes('another writer keeps changing this object'))),
      () => `a line in the log after ${updates} updates`,
    );
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.ok(updates <= 6, `${updates} updates`);
  });
});
