import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type AuthorityState,
  type CertificatesState,
  type LeafState,
  MAX_REQUEUE_MS,
  planCertificates,
} from './certificate-plan.ts';
import { BACKDATED_MS, DEFAULT_CERTIFICATE_SETTINGS, settingsProblem } from './certificate-settings.ts';
import { CertificateWorld } from './testing/certificate-world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const settings = DEFAULT_CERTIFICATE_SETTINGS;
const START = Date.UTC(2030, 0, 1);

/** A CA that was created at the start. */
function authority(changes: Partial<AuthorityState> = {}): AuthorityState {
  const notAfter = START + settings.authorityLifetimeMs;
  return {
    current: { id: 'a', notBefore: START - BACKDATED_MS, notAfter, hasKey: true },
    previous: [],
    isRotationRequested: false,
    ...changes,
  };
}

function leaf(certificate: Partial<LeafState['certificate']> = {}, trusts: readonly string[] = ['a']): LeafState {
  const notAfter = START + settings.leafLifetimeMs;
  return {
    secret: 'one',
    certificate: { issuer: 'a', notBefore: START - BACKDATED_MS, notAfter, ...certificate },
    trusts,
  };
}

function plan(
  state: Partial<CertificatesState>,
  now = START,
): readonly [string | undefined, readonly string[], number] {
  const all = { authority: authority(), leaves: [leaf()], isPublished: true, isLeading: true, ...state };
  const { step, leaves, requeueAfterMs } = planCertificates(all, now, settings);
  return [step?.action, leaves.map(({ action }) => action), requeueAfterMs];
}

const next = { id: 'b', notBefore: START - BACKDATED_MS, notAfter: START + settings.authorityLifetimeMs };

describe('planCertificates', () => {
  it('changes nothing while everything is valid, and plans the next pass', () => {
    assert.deepEqual(plan({}), [undefined, [], MAX_REQUEUE_MS]);
    assert.deepEqual(plan({}, START + 60 * DAY - MINUTE), [undefined, [], MINUTE]);
  });

  it('renews a certificate when a third of its own lifetime is left, whatever the settings for new ones are', () => {
    assert.deepEqual(plan({}, START + 60 * DAY)[1], ['issue']);
    const short = leaf({ notAfter: START + 3 * DAY });
    assert.deepEqual(plan({ leaves: [short] }, START + 2 * DAY - 1)[1], []);
    assert.deepEqual(plan({ leaves: [short] }, START + 2 * DAY)[1], ['issue']);
  });

  it('issues certificates that are missing, unusable, expired, not valid yet or of another CA, and corrects only trusted CAs otherwise', () => {
    assert.deepEqual(plan({ authority: 'absent' }).slice(0, 2), ['create', []]);
    assert.deepEqual(plan({ authority: 'unusable' }).slice(0, 2), ['create', []]);
    assert.deepEqual(plan({ leaves: [{ secret: 'one', trusts: [] }] })[1], ['issue']);
    assert.deepEqual(plan({ leaves: [{ secret: 'one', trusts: ['a'], fault: 'no key' }] })[1], ['issue']);
    assert.deepEqual(plan({ leaves: [leaf({ issuer: 'z' })] })[1], ['issue']);
    assert.deepEqual(plan({ leaves: [leaf({ notAfter: START })] })[1], ['issue']);
    assert.deepEqual(plan({ leaves: [leaf({ notBefore: START + 1 })] })[1], ['issue']);
    assert.deepEqual(plan({ leaves: [leaf({}, ['a', 'old'])] })[1], ['trust']);
    assert.deepEqual(plan({ leaves: [leaf({}, [])] })[1], ['trust']);
  });

  it('renews with the next CA, if the key of the current one was lost, only when the next one is trusted or the renewal is urgent', () => {
    const keyless = { ...authority().current, hasKey: false };
    const lost = authority({ current: keyless, next });
    const state = (certificate: LeafState): Partial<CertificatesState> => ({
      authority: lost,
      leaves: [certificate],
      isPublished: false,
    });
    const good = leaf({}, ['a', 'b']);
    const due = START + 60 * DAY;
    assert.deepEqual(plan(state(good), due)[1], []);
    const lastCall = START + settings.leafLifetimeMs - 2 * settings.overlapMs;
    assert.deepEqual(plan(state(good), lastCall - MINUTE), [undefined, [], MINUTE]);
    assert.deepEqual(plan(state(good), lastCall)[1], ['issue']);
    assert.deepEqual(plan(state({ secret: 'one', trusts: ['a', 'b'] }))[1], ['issue']);
    const promoted = authority({ current: { ...next, hasKey: true }, previous: [keyless] });
    assert.deepEqual(plan({ authority: promoted, leaves: [good] }, due)[1], ['issue']);
  });

  it('rotates the CA while it can still issue certificates with their full lifetime', () => {
    const due = START + settings.authorityLifetimeMs - settings.leafLifetimeMs - 3 * settings.overlapMs;
    const leaves = [leaf({ notAfter: due + 80 * DAY, notBefore: due - 10 * DAY })];
    assert.equal(plan({ leaves }, due - 1)[0], undefined);
    assert.equal(plan({ leaves }, due)[0], 'introduce');
    assert.equal(plan({ authority: authority({ isRotationRequested: true }) })[0], 'introduce');
    assert.equal(plan({ authority: authority({ isRotationRequested: true }), isLeading: false })[0], undefined);
    const keyless = { ...authority().current, hasKey: false };
    assert.equal(plan({ authority: authority({ current: keyless }) })[0], 'introduce');
  });

  it('promotes a CA only after it is trusted everywhere and the overlap has passed', () => {
    const both = [leaf({}, ['a', 'b'])];
    const introducing = authority({ next });
    assert.deepEqual(plan({ authority: introducing }), [undefined, ['trust'], MAX_REQUEUE_MS]);
    assert.equal(plan({ authority: introducing, leaves: both, isPublished: false })[0], undefined);
    assert.equal(plan({ authority: introducing, leaves: both })[0], 'spread');
    const spread = authority({ next, spreadAt: START });
    assert.deepEqual(plan({ authority: spread, leaves: both }), [undefined, [], settings.overlapMs]);
    assert.equal(plan({ authority: spread, leaves: both }, START + settings.overlapMs)[0], 'promote');
  });

  it('retires a CA only after all its certificates are replaced and the overlap has passed', () => {
    const retiring = authority({ previous: [{ ...next, id: 'z' }] });
    const old = leaf({ issuer: 'z' }, ['a', 'z']);
    const renewed = leaf({}, ['a', 'z']);
    assert.deepEqual(plan({ authority: retiring, leaves: [old, renewed] }).slice(0, 2), [undefined, ['issue']]);
    assert.equal(plan({ authority: retiring, leaves: [renewed] })[0], 'spread');
    const spread = { ...retiring, spreadAt: START };
    assert.equal(plan({ authority: spread, leaves: [renewed] }, START + settings.overlapMs - 1)[0], undefined);
    assert.equal(plan({ authority: spread, leaves: [renewed] }, START + settings.overlapMs)[0], 'retire');
  });

  it('ignores a recorded time far in the future, but not one of a clock that is a little ahead', () => {
    const both = [leaf({}, ['a', 'b'])];
    const ahead = (ms: number): CertificatesState['authority'] => authority({ next, spreadAt: START + ms });
    assert.equal(plan({ authority: ahead(MINUTE), leaves: both })[0], undefined);
    assert.equal(plan({ authority: ahead(DAY), leaves: both })[0], 'spread');
  });

  it('stops waiting for a CA to be trusted when the current one is about to expire', () => {
    const current = { ...authority().current, notAfter: START + settings.overlapMs };
    assert.equal(plan({ authority: authority({ current, next }), isPublished: false })[0], 'spread');
    assert.equal(plan({ authority: authority({ current, next }) }, START + settings.overlapMs)[0], 'promote');
    assert.equal(plan({ authority: authority({ current }) }, START + settings.overlapMs)[0], 'create');
    const ended = { ...next, notAfter: START };
    assert.equal(plan({ authority: authority({ next: ended }) })[0], 'introduce');
  });

  it('keeps all processes trusting each other, for any leaders, clocks and losses of the CA', () => {
    const times = { authorityLifetimeMs: 20 * DAY, leafLifetimeMs: 4 * DAY, overlapMs: 30 * MINUTE };
    assert.equal(settingsProblem(times), undefined);
    const secrets = [
      'portcullis-controller-webhook',
      'portcullis-controller-control',
      'server-webhook',
      'server-control',
    ];
    const incident = fc.record({
      afterMs: fc.integer({ min: HOUR, max: 3 * DAY }),
      what: fc.constantFrom(
        'rotation request',
        'CA lost',
        'key lost',
        'Secret lost',
        'write fails',
        'new leader',
        'no leader',
        'follower',
      ),
      stuck: fc.constantFrom(...secrets, 'configuration'),
      ahead: fc.integer({ min: -MINUTE, max: MINUTE }),
    });
    fc.assert(
      fc.property(fc.array(incident, { minLength: 10, maxLength: 30 }), fc.integer(), (incidents, seed) => {
        let state = seed >>> 0;
        const random = (): number => {
          state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
          return state / 2 ** 32;
        };
        const world = new CertificateWorld({ settings: times, secrets, random });
        let nextPass = world.now + world.pass();
        // The installation is complete.
        world.waitUntil(world.now + times.overlapMs);
        const run = (until: number, isLed: boolean): void => {
          while (world.now < until) {
            world.waitUntil(Math.min(world.now + 3 * MINUTE, until));
            assert.deepEqual(world.failures(), [], `at ${new Date(world.now).toISOString()}: ${world.changes.join()}`);
            if (isLed && (world.now >= nextPass || world.phase !== 'Stable')) {
              nextPass = world.now + world.pass();
            }
          }
        };
        for (const { afterMs, what, ahead, stuck } of incidents) {
          run(world.now + afterMs, true);
          const { authority: known } = world;
          switch (what) {
            case 'rotation request':
              world.authority = typeof known === 'string' ? known : { ...known, isRotationRequested: true };
              break;
            case 'CA lost':
              // Only outside of a rotation: during one, the certificates do not have all CAs that are in use.
              world.authority = world.phase === 'Stable' ? 'absent' : known;
              break;
            case 'key lost':
              world.authority =
                typeof known === 'string' || world.phase !== 'Stable'
                  ? known
                  : { ...known, current: { ...known.current, hasKey: false } };
              break;
            case 'Secret lost':
              world.leaves.set('server-webhook', { secret: 'server-webhook', trusts: [] });
              break;
            case 'write fails':
              world.authority = typeof known === 'string' ? known : { ...known, isRotationRequested: true };
              if (ahead > 0) {
                // The next CA is trusted everywhere, and about to be promoted.
                nextPass = world.now + world.pass();
                run(world.now + times.overlapMs, true);
              }
              world.stuck.add(stuck);
              run(world.now + afterMs / 3, true);
              world.stuck.clear();
              break;
            case 'new leader':
              world.ahead = ahead;
              break;
            case 'no leader':
              run(world.now + DAY, false);
              break;
            case 'follower':
              world.pass(false);
              break;
            default:
              what satisfies never;
          }
          nextPass = world.now + world.pass();
        }
        run(world.now + 20 * DAY, true);
        assert.ok(world.changes.filter((change) => change === 'create').length <= incidents.length + 1);
      }),
      { numRuns: 12 },
    );
  });
});

describe('settingsProblem', () => {
  it('rejects settings with which certificates could not be renewed in time', () => {
    assert.equal(settingsProblem(settings), undefined);
    assert.match(settingsProblem({ ...settings, overlapMs: 0 }) ?? '', /overlap/);
    assert.match(settingsProblem({ ...settings, leafLifetimeMs: 40 * MINUTE }) ?? '', /lifetime of certificates/);
    assert.match(settingsProblem({ ...settings, authorityLifetimeMs: 100 * DAY }) ?? '', /lifetime of the CA/);
  });
});
