import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type AuthorityState,
  type CertificatesState,
  type LeafState,
  MAX_LOOK_AGAIN_MS,
  planCertificates,
} from './certificate-plan.ts';
import { BACKDATED_MS, DEFAULT_CERTIFICATE_SETTINGS, settingsProblem } from './certificate-settings.ts';
import { CertificateWorld } from './testing/certificate-world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const settings = DEFAULT_CERTIFICATE_SETTINGS;
const START = Date.UTC(2030, 0, 1);

/** A CA that was made at the start. */
function authority(changes: Partial<AuthorityState> = {}): AuthorityState {
  const notAfter = START + settings.authorityLifetimeMs;
  return {
    current: { id: 'a', notBefore: START - BACKDATED_MS, notAfter, hasKey: true },
    previous: [],
    isAsked: false,
    ...changes,
  };
}

function leaf(held: Partial<LeafState['held']> = {}, trusts: readonly string[] = ['a']): LeafState {
  const notAfter = START + settings.leafLifetimeMs;
  return { secret: 'one', held: { issuer: 'a', notBefore: START - BACKDATED_MS, notAfter, ...held }, trusts };
}

function plan(
  state: Partial<CertificatesState>,
  now = START,
): readonly [string | undefined, readonly string[], number] {
  const all = { authority: authority(), leaves: [leaf()], isTold: true, isLeading: true, ...state };
  const { step, leaves, lookAgainMs } = planCertificates(all, now, settings);
  return [step?.action, leaves.map(({ action }) => action), lookAgainMs];
}

const next = { id: 'b', notBefore: START - BACKDATED_MS, notAfter: START + settings.authorityLifetimeMs };

describe('a plan for certificates', () => {
  it('leaves alone what is good, and looks again', () => {
    assert.deepEqual(plan({}), [undefined, [], MAX_LOOK_AGAIN_MS]);
    assert.deepEqual(plan({}, START + 60 * DAY - MINUTE), [undefined, [], MINUTE]);
  });

  it('renews a certificate when a third of its own time is left, whatever new ones get', () => {
    assert.deepEqual(plan({}, START + 60 * DAY)[1], ['issue']);
    const short = leaf({ notAfter: START + 3 * DAY });
    assert.deepEqual(plan({ leaves: [short] }, START + 2 * DAY - 1)[1], []);
    assert.deepEqual(plan({ leaves: [short] }, START + 2 * DAY)[1], ['issue']);
  });

  it('makes what is missing, broken, ended, not valid yet or of another CA, and mends only trust where that is all', () => {
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

  it('renews from a next CA, where the key of the current one is lost, only when that is trusted or a certificate about to end', () => {
    const keyless = { ...authority().current, hasKey: false };
    const lost = authority({ current: keyless, next });
    const state = (held: LeafState): Partial<CertificatesState> => ({ authority: lost, leaves: [held], isTold: false });
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

  it('changes the CA while it is good for a whole certificate yet', () => {
    const due = START + settings.authorityLifetimeMs - settings.leafLifetimeMs - 3 * settings.overlapMs;
    const leaves = [leaf({ notAfter: due + 80 * DAY, notBefore: due - 10 * DAY })];
    assert.equal(plan({ leaves }, due - 1)[0], undefined);
    assert.equal(plan({ leaves }, due)[0], 'introduce');
    assert.equal(plan({ authority: authority({ isAsked: true }) })[0], 'introduce');
    assert.equal(plan({ authority: authority({ isAsked: true }), isLeading: false })[0], undefined);
    const keyless = { ...authority().current, hasKey: false };
    assert.equal(plan({ authority: authority({ current: keyless }) })[0], 'introduce');
  });

  it('waits until a CA is trusted everywhere, and then for the overlap, before it signs', () => {
    const both = [leaf({}, ['a', 'b'])];
    const introducing = authority({ next });
    assert.deepEqual(plan({ authority: introducing }), [undefined, ['trust'], MAX_LOOK_AGAIN_MS]);
    assert.equal(plan({ authority: introducing, leaves: both, isTold: false })[0], undefined);
    assert.equal(plan({ authority: introducing, leaves: both })[0], 'spread');
    const spread = authority({ next, spreadAt: START });
    assert.deepEqual(plan({ authority: spread, leaves: both }), [undefined, [], settings.overlapMs]);
    assert.equal(plan({ authority: spread, leaves: both }, START + settings.overlapMs)[0], 'promote');
  });

  it('waits until nothing comes from the old CA, and then for the overlap, before it is trusted no more', () => {
    const retiring = authority({ previous: [{ ...next, id: 'z' }] });
    const old = leaf({ issuer: 'z' }, ['a', 'z']);
    const renewed = leaf({}, ['a', 'z']);
    assert.deepEqual(plan({ authority: retiring, leaves: [old, renewed] }).slice(0, 2), [undefined, ['issue']]);
    assert.equal(plan({ authority: retiring, leaves: [renewed] })[0], 'spread');
    const spread = { ...retiring, spreadAt: START };
    assert.equal(plan({ authority: spread, leaves: [renewed] }, START + settings.overlapMs - 1)[0], undefined);
    assert.equal(plan({ authority: spread, leaves: [renewed] }, START + settings.overlapMs)[0], 'retire');
  });

  it('takes a time far ahead for that of a wrong clock, and one a little ahead as it is', () => {
    const both = [leaf({}, ['a', 'b'])];
    const ahead = (ms: number): CertificatesState['authority'] => authority({ next, spreadAt: START + ms });
    assert.equal(plan({ authority: ahead(MINUTE), leaves: both })[0], undefined);
    assert.equal(plan({ authority: ahead(DAY), leaves: both })[0], 'spread');
  });

  it('waits no more for a CA to be trusted when the current one is about to end', () => {
    const current = { ...authority().current, notAfter: START + settings.overlapMs };
    assert.equal(plan({ authority: authority({ current, next }), isTold: false })[0], 'spread');
    assert.equal(plan({ authority: authority({ current, next }) }, START + settings.overlapMs)[0], 'promote');
    assert.equal(plan({ authority: authority({ current }) }, START + settings.overlapMs)[0], 'create');
    const ended = { ...next, notAfter: START };
    assert.equal(plan({ authority: authority({ next: ended }) })[0], 'introduce');
  });

  it('keeps everybody trusting everybody for years, whoever leads with whatever clock, and whatever happens to the CA', () => {
    const times = { authorityLifetimeMs: 20 * DAY, leafLifetimeMs: 4 * DAY, overlapMs: 30 * MINUTE };
    assert.equal(settingsProblem(times), undefined);
    const secrets = [
      'portcullis-controller-webhook',
      'portcullis-controller-control',
      'server-webhook',
      'server-control',
    ];
    const trouble = fc.record({
      afterMs: fc.integer({ min: HOUR, max: 3 * DAY }),
      what: fc.constantFrom('ask', 'lose', 'break key', 'lose a secret', 'stuck', 'new leader', 'away', 'follower'),
      stuck: fc.constantFrom(...secrets, 'configuration'),
      ahead: fc.integer({ min: -MINUTE, max: MINUTE }),
    });
    fc.assert(
      fc.property(fc.array(trouble, { minLength: 10, maxLength: 30 }), fc.integer(), (troubles, seed) => {
        let state = seed >>> 0;
        const random = (): number => {
          state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
          return state / 2 ** 32;
        };
        const world = new CertificateWorld({ settings: times, secrets, random });
        let lookAt = world.now + world.pass();
        // Installed.
        world.waitUntil(world.now + times.overlapMs);
        const run = (until: number, isLed: boolean): void => {
          while (world.now < until) {
            world.waitUntil(Math.min(world.now + 3 * MINUTE, until));
            assert.deepEqual(world.failures(), [], `at ${new Date(world.now).toISOString()}: ${world.changes.join()}`);
            if (isLed && (world.now >= lookAt || world.phase !== 'Stable')) {
              lookAt = world.now + world.pass();
            }
          }
        };
        for (const { afterMs, what, ahead, stuck } of troubles) {
          run(world.now + afterMs, true);
          const { authority: known } = world;
          switch (what) {
            case 'ask':
              world.authority = typeof known === 'string' ? known : { ...known, isAsked: true };
              break;
            case 'lose':
              // While it changes, some trust the next one already, and some come from the one before: both are beside them.
              world.authority = world.phase === 'Stable' ? 'absent' : known;
              break;
            case 'break key':
              world.authority =
                typeof known === 'string' || world.phase !== 'Stable'
                  ? known
                  : { ...known, current: { ...known.current, hasKey: false } };
              break;
            case 'lose a secret':
              world.leaves.set('server-webhook', { secret: 'server-webhook', trusts: [] });
              break;
            case 'stuck':
              world.authority = typeof known === 'string' ? known : { ...known, isAsked: true };
              if (ahead > 0) {
                // The next CA is trusted everywhere, and about to sign.
                lookAt = world.now + world.pass();
                run(world.now + times.overlapMs, true);
              }
              world.stuck.add(stuck);
              run(world.now + afterMs / 3, true);
              world.stuck.clear();
              break;
            case 'new leader':
              world.ahead = ahead;
              break;
            case 'away':
              run(world.now + DAY, false);
              break;
            case 'follower':
              world.pass(false);
              break;
            default:
              what satisfies never;
          }
          lookAt = world.now + world.pass();
        }
        run(world.now + 20 * DAY, true);
        assert.ok(world.changes.filter((change) => change === 'create').length <= troubles.length + 1);
      }),
      { numRuns: 12 },
    );
  });
});

describe('settings of certificates', () => {
  it('are refused where certificates could not be renewed in time', () => {
    assert.equal(settingsProblem(settings), undefined);
    assert.match(settingsProblem({ ...settings, overlapMs: 0 }) ?? '', /overlap/);
    assert.match(settingsProblem({ ...settings, leafLifetimeMs: 40 * MINUTE }) ?? '', /lifetime of certificates/);
    assert.match(settingsProblem({ ...settings, authorityLifetimeMs: 100 * DAY }) ?? '', /lifetime of the CA/);
  });
});
