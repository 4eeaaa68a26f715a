import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { CertificateSpec } from './certificate-requirements.ts';
import { type CertificateEvaluation, evaluateCertificates } from './evaluate-certificates.ts';
import { type CertificateSecret, certificateSecret, KnownCertificates } from './secret-certificates.ts';
import { HOUR, NOW, pem, secret as secretObject } from './testing/certificate-scene.ts';

/** A Secret as evaluation sees it. */
const secret = (...given: Parameters<typeof secretObject>): CertificateSecret =>
  certificateSecret(secretObject(...given));
const evaluate = (spec: CertificateSpec, secrets: readonly CertificateSecret[], now = NOW): CertificateEvaluation =>
  evaluateCertificates(spec, [{ namespace: 'default', secrets }], now);
const messageOf = (spec: CertificateSpec, ...secrets: readonly CertificateSecret[]): string =>
  evaluate(spec, secrets).message;
const detailsOf = (evaluation: CertificateEvaluation, namespace = 'default') => evaluation.compliancyDetails[namespace];
const WELL = 'Compliant; All evaluated certificates are compliant';

describe('certificates that are known', () => {
  it('are read once, and again when the Secret changed', async () => {
    const known = new KnownCertificates();
    const object = secretObject('web', await pem());
    assert.equal(known.in(object), known.in(object));
    assert.equal(known.in(object).found?.certificates.length, 1);
    assert.notEqual(known.in(structuredClone(object)), known.in(object));
  });
});

describe('the message of an evaluation', () => {
  let soon: string;
  let soonCa: string;
  let long: string;
  let longCa: string;
  let named: string;
  before(async () => {
    soon = await pem({ until: 100 });
    soonCa = await pem({ until: 40, isCa: true });
    long = await pem({ until: 10_000 });
    longCa = await pem({ until: 50_000, isCa: true });
    named = await pem({ names: ['a.example.com', '*.test'] });
  });

  it('says that all is well, or that no namespace is selected', () => {
    assert.equal(messageOf({ minimumDuration: '50h' }, secret('web', soon)), WELL);
    assert.equal(messageOf({}), WELL);
    const { message, compliancyDetails, compliant } = evaluateCertificates({}, [], NOW);
    assert.equal(message, 'Compliant; No namespaces matched the namespace selector.');
    assert.equal(compliant, 'Compliant');
    assert.deepEqual(compliancyDetails, {
      '': {
        nonCompliantCertificates: 0,
        nonCompliantCertificatesList: {},
        message: 'Found 0 non compliant certificates, no namespaces were selected.\n',
      },
    });
  });

  it('names certificates that expire, by namespace and name', () => {
    const { message } = evaluateCertificates(
      { minimumDuration: '300h' },
      [
        { namespace: 'prod', secrets: [secret('api', soon)] },
        { namespace: 'default', secrets: [secret('web', soon), secret('app', soon)] },
      ],
      NOW,
    );
    assert.equal(
      message,
      'NonCompliant; 3 certificates expire in less than 300h0m0s: default:app, default:web, prod:api\n',
    );
  });

  it('has a default of four weeks', () => {
    assert.equal(
      messageOf({}, secret('web', soon)),
      'NonCompliant; 1 certificates expire in less than 672h0m0s: default:web\n',
    );
  });

  it('tells CAs apart where the policy does', () => {
    assert.equal(
      messageOf({ minimumDuration: '1h', minimumCADuration: '45h' }, secret('ca', soonCa), secret('web', soon)),
      'NonCompliant;  1 CA certificates expire in less than 45h0m0s: default:ca\n',
    );
    assert.equal(
      messageOf({ minimumDuration: '45h' }, secret('ca', soonCa)),
      'NonCompliant; 1 certificates expire in less than 45h0m0s: default:ca\n',
    );
    assert.equal(messageOf({ minimumDuration: '45h', minimumCADuration: '1h' }, secret('ca', soonCa)), WELL);
  });

  it('names certificates that are valid for too long', () => {
    const limits = { maximumDuration: '9000h', maximumCADuration: '40000h' };
    assert.equal(
      messageOf(limits, secret('ca', longCa), secret('web', long)),
      'NonCompliant;  1 certificates exceed the maximum duration of 9000h0m0s: default:web\n 1 CA certificates exceed the maximum duration of 40000h0m0s: default:ca\n',
    );
    assert.equal(
      messageOf({ maximumDuration: '9000h' }, secret('ca', longCa)),
      'NonCompliant;  1 certificates exceed the maximum duration of 9000h0m0s: default:ca\n',
    );
  });

  it('names certificates with other names than the patterns say', () => {
    const patterns = String.raw`.*\.example\.com`;
    const both = { allowedSANPattern: patterns, disallowedSANPattern: String.raw`[\*]` };
    assert.equal(
      messageOf(both, secret('web', named)),
      'NonCompliant;  1 certificates defined SAN entries do not match pattern Allowed: .*\\.example\\.com Disallowed: [\\*]: default:web\n',
    );
    assert.equal(
      messageOf({ disallowedSANPattern: String.raw`[\*]` }, secret('web', named)),
      'NonCompliant;  1 certificates defined SAN entries do not match pattern  Disallowed: [\\*]: default:web\n',
    );
    assert.equal(messageOf({ allowedSANPattern: 'a|test' }, secret('web', named)), WELL);
    assert.equal(messageOf({ allowedSANPattern: 'x' }, secret('web', long)), WELL, 'a certificate without names');
  });

  it('puts all kinds of violations into one message', () => {
    assert.equal(
      messageOf(
        { maximumDuration: '5000h', disallowedSANPattern: 'test' },
        secret('a', soon),
        secret('b', long),
        secret('c', named),
      ),
      'NonCompliant; 1 certificates expire in less than 672h0m0s: default:a\n 1 certificates exceed the maximum duration of 5000h0m0s: default:b\n 1 certificates defined SAN entries do not match pattern  Disallowed: test: default:c\n',
    );
  });

  it('does not pass what cannot be checked', () => {
    for (const [spec, problem] of [
      [
        { allowedSANPattern: '(' },
        'spec.allowedSANPattern is not a regular expression: error parsing regexp: missing closing ): `(`',
      ],
      [
        { disallowedSANPattern: '(?=a)' },
        'spec.disallowedSANPattern is not a regular expression: error parsing regexp: invalid or unsupported Perl syntax: `(?=`',
      ],
      [{ minimumDuration: '1x5h' }, 'spec.minimumDuration is not a duration such as 300h'],
      [
        { allowedSANPattern: 'x'.repeat(10_001) },
        'spec.allowedSANPattern is not a regular expression: expression is longer than 10000 characters',
      ],
    ] as const) {
      const { compliant, message } = evaluate(spec, []);
      assert.deepEqual([compliant, message], ['NonCompliant', `NonCompliant;  ${problem}\n`]);
    }
    assert.equal(
      messageOf({}, secret('web', 'no certificate'), secret('a', soon)),
      'NonCompliant; 1 certificates expire in less than 672h0m0s: default:a\n 1 certificates cannot be checked: default:web\n',
    );
  });

  it('does not pass what takes too long to match', async () => {
    const names = Array.from({ length: 60 }, (_, index) => `${'a'.repeat(200)}${index}`);
    const certificate = await pem({ names });
    for (const spec of [
      { allowedSANPattern: '(a?){999}' },
      { disallowedSANPattern: '(a?){500}a{999}' },
      { allowedSANPattern: 'a', disallowedSANPattern: '(a?){999}(a?){500}b' },
    ]) {
      const { message } = evaluate(spec, [secret('web', certificate)]);
      assert.equal(message, 'NonCompliant;  1 certificates cannot be checked: default:web\n');
    }
    assert.equal(messageOf({ allowedSANPattern: '^a+[0-9]+$' }, secret('web', certificate)), WELL);
  });

  it('names at most a hundred certificates in a sentence', () => {
    const secrets = Array.from({ length: 103 }, (_, index) => secret(`s${index}`, soon));
    assert.match(messageOf({}, ...secrets), /^NonCompliant; 103 certificates .*default:s\d+ and 3 more\n$/u);
  });
});

describe('the Secrets of a policy', () => {
  let soon: string;
  before(async () => {
    soon = await pem({ until: 1 });
  });
  const count = (spec: CertificateSpec, ...secrets: readonly CertificateSecret[]) =>
    detailsOf(evaluate(spec, secrets))?.nonCompliantCertificates;

  it('have all labels of the selector', () => {
    const labelled = secret('web', soon, { labels: { a: '1', b: '2' } });
    assert.equal(count({ labelSelector: { a: '1' } }, labelled), 1);
    assert.equal(count({ labelSelector: { a: '1', b: '2' } }, labelled), 1);
    assert.equal(count({ labelSelector: { a: '2' } }, labelled), 0);
    assert.equal(count({ labelSelector: { toString: '' } }, labelled), 0);
  });

  it('have the certificate in the key that a label names', () => {
    const labels = { certificate_key_name: 'ca.crt' };
    assert.equal(count({}, secret('web', soon, { key: 'ca.crt', labels })), 1);
    assert.equal(count({}, secret('web', soon, { key: 'ca.crt' })), 0, 'without the label it is no certificate');
    assert.equal(count({}, secret('web', soon, { labels })), 1, 'the named key is missing');
  });

  it('may contain no certificate at all', () => {
    assert.equal(count({}, secret('web', '')), 0, 'a certificate that is being issued');
    assert.equal(count({}, certificateSecret({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' } })), 0);
    assert.equal(
      count({}, certificateSecret({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' }, data: 'x' })),
      0,
    );
  });

  it('are named by their labels, each by a name of its own', () => {
    const legacy = 'certmanager.k8s.io/certificate-name';
    const list = detailsOf(
      evaluate({}, [
        secret('one', soon, { labels: { 'certificate-name': 'web', [legacy]: 'old' } }),
        secret('two', soon, { labels: { [legacy]: 'web' } }),
        secret('constructor', soon),
      ]),
    )?.nonCompliantCertificatesList;
    assert.deepEqual(
      Object.entries(list ?? {}).map(([name, { secretName }]) => [name, secretName]),
      [
        ['constructor', 'constructor'],
        ['web', 'one'],
        ['web (two)', 'two'],
      ],
    );
  });
});

describe('the details of a namespace', () => {
  it('list each violation with all that is wrong', async () => {
    const text = await pem({ from: -20_000, until: -5, names: ['a.test'] });
    const evaluation = evaluate({ maximumDuration: '9000h', disallowedSANPattern: 'test' }, [secret('web', text)]);
    assert.deepEqual(detailsOf(evaluation), {
      nonCompliantCertificates: 1,
      nonCompliantCertificatesList: {
        web: {
          secretName: 'web',
          expiration: '2030-05-31T19:00:00Z',
          expiry: -18_000_000_000_000,
          ca: false,
          duration: 71_982_000_000_000_000,
          sans: ['a.test'],
        },
      },
      message:
        'Found 1 non compliant certificates in the namespace default.\nList of non compliant certificates:\nweb expired on 2030-05-31T19:00:00Z\nweb duration too long 19995h0m0s\nweb SAN entry found not matching pattern  Disallowed: test\n',
    });
  });

  it('say when a certificate expires, and why one cannot be checked', async () => {
    const evaluation = evaluate({}, [secret('a', await pem({ until: 5 })), secret('b', 'x')]);
    assert.equal(
      detailsOf(evaluation)?.message,
      'Found 2 non compliant certificates in the namespace default.\nList of non compliant certificates:\na expires on 2030-06-01T05:00:00Z\nb cannot be checked: no certificate\n',
    );
    assert.deepEqual(detailsOf(evaluation)?.nonCompliantCertificatesList?.['b'], { secretName: 'b' });
  });

  it('check the whole chain', async () => {
    const [leaf, ca] = [await pem(), await pem({ until: 40, from: -20_000, isCa: true })];
    const evaluation = evaluate({ maximumDuration: '9000h' }, [secret('web', leaf + ca)]);
    assert.equal(evaluation.message, 'NonCompliant; 1 certificates expire in less than 672h0m0s: default:web\n');
    assert.deepEqual(Object.keys(detailsOf(evaluation)?.nonCompliantCertificatesList ?? {}), ['web[1]']);
    assert.match(
      messageOf({ maximumCADuration: '9000h', minimumDuration: '1h' }, secret('web', leaf + ca)),
      /^NonCompliant; {2}1 CA certificates exceed the maximum duration of 9000h0m0s: default:web\n$/u,
    );
  });

  it('report the part of a text that is no certificate', async () => {
    const good = await pem();
    const [begin, end] = ['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----'];
    for (const [text, problem] of [
      [`${good}${begin}\nAAAA\n${end}\n`, /web cannot be checked: certificate 2 cannot be parsed: /u],
      [`${good}${begin}\n%%%\n${end}\n`, /web cannot be checked: 1 certificates are not valid PEM\n$/u],
      [good.repeat(40), /web cannot be checked: more than 32 certificates\n$/u],
      ['x'.repeat(140_000), /web cannot be checked: longer than 131072 characters\n$/u],
      ['x'.repeat(10_000_000), /web cannot be checked: longer than 131072 characters\n$/u],
    ] as const) {
      const evaluation = evaluate({}, [secret('web', text)]);
      assert.match(detailsOf(evaluation)?.message ?? '', problem);
      assert.equal(evaluation.compliant, 'NonCompliant');
    }
  });

  it('keep the remaining time of the status before, so that an evaluation without changes writes nothing', async () => {
    const secrets = [secret('web', await pem({ until: 5 }))];
    const first = evaluate({}, secrets);
    const later = evaluateCertificates({}, [{ namespace: 'default', secrets }], NOW + HOUR, first.compliancyDetails);
    assert.deepEqual(later, first);
    const renewed = [secret('web', await pem({ until: 9 }))];
    const next = evaluateCertificates({}, [{ namespace: 'default', secrets: renewed }], NOW, first.compliancyDetails);
    assert.equal(detailsOf(next)?.nonCompliantCertificatesList?.['web']?.expiry, 9 * HOUR * 1e6);
  });

  it('are bounded, and say what they leave out', async () => {
    const names = Array.from({ length: 150 }, (_, index) => `${'n'.repeat(50)}${index}.example.com`);
    const text = await pem({ until: 5, names });
    const secrets = Array.from({ length: 200 }, (_, index) => secret(`s${index}`, text));
    const { compliancyDetails } = evaluate({}, secrets);
    const {
      nonCompliantCertificates,
      nonCompliantCertificatesList: list = {},
      message = '',
    } = compliancyDetails['default'] ?? {};
    assert.equal(nonCompliantCertificates, 200);
    assert.ok(JSON.stringify(compliancyDetails).length < 600_000);
    assert.equal(Object.values(list)[0]?.sans?.length, 100);
    assert.ok(message.endsWith(`… and ${200 - Object.keys(list).length} more\n`), message.slice(-50));
  });
});

describe('the next change', () => {
  it('is the millisecond after the threshold, and then that after the end', async () => {
    const secrets = [secret('web', await pem({ until: 100 }))];
    const at = (now: number) => {
      const { compliant, nextChange } = evaluate({ minimumDuration: '40h' }, secrets, now);
      return [compliant, nextChange];
    };
    const [threshold, end] = [NOW + 60 * HOUR, NOW + 100 * HOUR];
    assert.deepEqual(at(NOW), ['Compliant', threshold + 1]);
    assert.deepEqual(at(threshold), ['Compliant', threshold + 1]);
    assert.deepEqual(at(threshold + 1), ['NonCompliant', end + 1]);
    assert.deepEqual(at(end + 1), ['NonCompliant', undefined]);
  });

  it('is the first of all certificates, and none without certificates', async () => {
    const secrets = [secret('a', await pem({ until: 900 })), secret('b', await pem({ until: 800 }))];
    assert.equal(evaluate({ minimumDuration: '100h' }, secrets).nextChange, NOW + 700 * HOUR + 1);
    assert.equal(evaluate({}, []).nextChange, undefined);
  });

  it('is exactly when the result changes, for any duration', async () => {
    const secrets = [secret('web', await pem({ until: 100 })), secret('ca', await pem({ until: 50, isCa: true }))];
    const duration = fc.integer({ min: 0, max: 200 * HOUR }).map((ms) => `${ms}ms500000ns`);
    fc.assert(
      fc.property(duration, duration, (minimumDuration, minimumCADuration) => {
        const spec = { minimumDuration, minimumCADuration };
        let now = NOW;
        for (let changes = 0; ; changes++) {
          const { nextChange, ...result } = evaluate(spec, secrets, now);
          if (nextChange === undefined) {
            assert.ok(changes <= 4);
            break;
          }
          const known = result.compliancyDetails;
          const selected = [{ namespace: 'default', secrets }];
          const { nextChange: same, ...just } = evaluateCertificates(spec, selected, nextChange - 1, known);
          const { nextChange: _, ...after } = evaluateCertificates(spec, selected, nextChange, known);
          assert.equal(same, nextChange);
          assert.deepEqual(just, result);
          assert.notDeepEqual(after, result);
          now = nextChange;
        }
      }),
      { numRuns: 30 },
    );
  });
});
