// RFC 0022 of Kubewarden, "policy lifecycle": without it, a module that cannot be fetched or settings that a policy refuses end all
// servers, which then crash in a loop, and every later change waits.
import { creation, type WalkChapter } from '../walk-step.ts';
import { applyPolicy, rejects } from './policies.ts';

const NOT_PREPARED = 'Secret "probe" has no label "owner"';
const LABELS = { module: '$MODULES/required-labels.wasm', settings: { labels: ['owner'] } };
const JUDGED = [creation('configmaps', /rule one/), creation('secrets', new RegExp(NOT_PREPARED))];

/** Names and restarts of the pods of policy servers. */
const PODS = `kubectl get pods -n portcullis --no-headers | awk '/^policy-server/ && $3 != "Terminating" {print $1, $4}' | sort`;

export const BAD_POLICY: WalkChapter = {
  title: '1 a bad policy stops no server',
  steps: [
    {
      by: 'admin',
      shows: 'applies two policies',
      sh: `${applyPolicy('guard', 'configmaps', rejects('rule one'))}\n${applyPolicy('labels', 'secrets', LABELS)}\n${PODS} > pods`,
      prints: [/guard created\n.*labels created/],
    },
    {
      by: 'reader',
      shows: 'waits until they are enforced, and reads which revision serves on how many replicas',
      sh: `kubectl wait cap/guard cap/labels --for=condition=Enforced
        kubectl wait cap/guard cap/labels --for=condition=Ready
        kubectl get cap`,
      prints: [
        /^NAME +MODE +PHASE +ENFORCED +DESIRED +SERVING +READY +FINDINGS +REASON +AGE$/m,
        /^guard +protect +Active +True +1 +1 +2 +(?:\S+ +)?Serving /m,
        /^labels +protect +Active +True +1 +1 +2 +(?:\S+ +)?Serving /m,
      ],
      probes: JUDGED,
    },
    {
      by: 'admin',
      shows: 'is refused a policy that can never work, with the place',
      sh: applyPolicy('typo', 'configmaps', {
        module: 'builtin:cel',
        settings: { validations: [{ expression: 'object.metadata.name ==' }] },
      }),
      code: 1,
      prints: [/spec\.settings\.validations\[0\]\.expression/],
    },
    ...(
      [
        ['a source that is down', { module: '$MODULES/down.wasm' }, 'SourceFailed', /answered 503/],
        [
          'a file that is no module',
          { module: '$MODULES/garbage.wasm' },
          'InvalidModule',
          /is not a WebAssembly module/,
        ],
        ['settings that it refuses', { settings: { labels: [1] } }, 'InvalidSettings', /labels\[0\]: expected a label/],
      ] as const
    ).flatMap(([what, change, reason, why]) => [
      {
        by: 'admin' as const,
        shows: `changes a policy: ${what}`,
        sh: applyPolicy('labels', 'secrets', { ...LABELS, ...change }),
        prints: [/labels configured/],
      },
      {
        by: 'reader' as const,
        shows: `reads that it failed, why, and that the last good revision serves: ${what}`,
        sh: `kubectl get cap && kubectl get cap labels -o wide && kubectl describe cap labels
          portcullis rollout status cap/labels --watch=false`,
        code: 1,
        prints: [
          new RegExp(`^labels +protect +Degraded +True +\\d +1 +0 +(?:\\S+ +)?${reason} `, 'm'),
          /^guard +protect +Active +True +1 +1 +2 +(?:\S+ +)?Serving /m,
          why,
          /; revision 1 serves(?:$| )/m,
          new RegExp(
            `^error: \\S+/labels: Degraded: ${reason}: .*\\n(?:.*\\n)*.*rollout undo clusteradmissionpolicy/labels$`,
            'm',
          ),
        ],
        probes: JUDGED,
      },
    ]),
    {
      by: 'admin',
      shows: 'applies a policy that was never good',
      sh: applyPolicy('fresh', 'services', { ...LABELS, module: '$MODULES/garbage.wasm' }),
      prints: [/fresh created/],
    },
    {
      by: 'reader',
      shows: 'reads that it is not enforced, so that requests are admitted',
      sh: `kubectl get cap fresh && kubectl describe cap fresh && kubectl wait cap/fresh --for=condition=Enforced=False
        portcullis rollout status cap/fresh --watch=false; portcullis doctor`,
      code: 1,
      prints: [
        /^fresh +protect +Error +False +1 +0 +0 +(?:\S+ +)?InvalidModule /m,
        /nothing serves, and the policy is not enforced yet/,
        /^error PolicyNotEnforced: clusteradmissionpolicy\/fresh$/m,
      ],
      probes: [...JUDGED, creation('services', /^201$/)],
    },
    {
      by: 'admin',
      shows: 'sees that no pod has restarted or was replaced',
      sh: `${PODS} | diff pods - && kubectl rollout restart deployment/policy-server-default -n portcullis
        kubectl rollout status deployment/policy-server-default -n portcullis --timeout=60s`,
      prints: [/successfully rolled out/],
    },
    {
      by: 'reader',
      shows: 'sees that new pods serve the same revisions: they do not need the source of the failed one',
      sh: 'kubectl get cap',
      prints: [
        /^guard +protect +Active +True +1 +1 +\d +(?:\S+ +)?Serving /m,
        /^labels +protect +Degraded +True +4 +1 +0 +(?:\S+ +)?InvalidSettings /m,
        /^fresh +protect +Error +False +1 +0 +0 +(?:\S+ +)?InvalidModule /m,
      ],
      probes: [...JUDGED, creation('services', /^201$/)],
    },
    {
      by: 'admin',
      shows: 'changes another policy meanwhile, corrects the failed one, and deletes the one that was never good',
      sh: `${applyPolicy('guard', 'configmaps', rejects('rule two'))}
        ${applyPolicy('labels', 'secrets', { ...LABELS, settings: { labels: ['team'] } })}
        kubectl delete cap fresh; ${PODS} > pods`,
      prints: [/guard configured\n.*labels configured\n.*fresh" deleted/],
    },
    {
      by: 'reader',
      shows: 'sees both changes serve',
      sh: `kubectl wait cap/guard --for=jsonpath={.status.servingRevision}=2 && kubectl get cap
        portcullis rollout status cap/labels`,
      prints: [
        /^guard +protect +Active +True +2 +2 +\d +(?:\S+ +)?Serving /m,
        /^labels +protect +Active +True +5 +5 +\d +(?:\S+ +)?Serving /m,
        /labels: Active: revision 5 serves on (\d) of \1 replicas/,
      ],
      probes: [creation('configmaps', /rule two/), creation('secrets', /has no label "team"/)],
    },
    {
      by: 'admin',
      shows: 'sees that both were loaded without a restart',
      sh: `${PODS} | diff pods -`,
      prints: [/^$/],
    },
  ],
};
