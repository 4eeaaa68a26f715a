// RFC 0022 of Kubewarden, "policy lifecycle": without it, a policy reads "active" while its new version fails; there is no revision, no way
// back, no state of a replica and no event.
import { creation, type WalkChapter } from '../walk-step.ts';
import { applyObject, applyPolicy, rejects } from './policies.ts';

const guard = (rule: RegExp) => [creation('configmaps', rule)];

export const STATUS: WalkChapter = {
  title: '2 the status is what happens',
  steps: [
    {
      by: 'reader',
      shows: 'sees every revision, what changed between them, and what serves',
      sh: `portcullis rollout history cap/guard; kubectl get policyrevisions -n portcullis
        portcullis rollout diff cap/guard --from 1 --to 2
        kubectl get cap guard -o jsonpath='{.status.serving.revision} {.status.serving.modules[0].settings}'`,
      prints: [
        /^1 +Retired +\S+ +generation 1 +builtin:cel@\S+\n2 +Serving +\S+ +generation 2: settings +builtin:cel@\S+$/m,
        /^kw\.cap\.guard-2 +ClusterAdmissionPolicy +guard +2 +Serving /m,
        /^- +message: rule one\n\+ +message: rule two$/m,
        /2 \{"validations":\[\{"expression":"false","message":"rule two"\}\]\}$/,
      ],
      probes: guard(/rule two/),
    },
    {
      by: 'reader',
      shows: 'sees what each replica serves',
      sh: 'kubectl get policyserverreplicas -n portcullis',
      prints: [
        /^NAME +POLICY SERVER +SERVING +FAILED +DEVIATIONS +REPORTED +AGE\n(policy-server-default-\S+ +default +2 +0 .*\n){2}$/,
      ],
    },
    {
      by: 'admin',
      shows: 'rolls back',
      sh: 'portcullis rollout undo cap/guard',
      prints: [/guard rolled back to revision 1$/m],
    },
    {
      by: 'reader',
      shows: 'sees the rollback serve',
      sh: 'portcullis rollout status cap/guard; portcullis rollout history cap/guard; kubectl get cap guard',
      prints: [/^3 +Serving +\S+ +rollback to 1 /m, /^guard +protect +Active +True +3 +3 +2 /m],
      probes: guard(/rule one/),
    },
    {
      by: 'admin',
      shows: 'pins a revision, and applies another one',
      sh: `portcullis rollout pin cap/guard --revision 2\n${applyPolicy('guard', 'configmaps', rejects('rule four'))}`,
      prints: [/guard pinned to revision 2\n/, /guard configured$/m],
    },
    {
      by: 'reader',
      shows: 'sees that the pinned one serves, and not the one that the spec declares',
      sh: 'kubectl get cap guard; portcullis rollout status cap/guard',
      prints: [
        /^guard +protect +RolledBack +True +2 +2 +2 +(?:\S+ +)?Pinned /m,
        /guard: RolledBack: revision 2 is pinned and serves on every replica; revision 4, which the spec declares, does not$/m,
      ],
      probes: guard(/rule two/),
    },
    {
      by: 'admin',
      shows: 'ends the pin',
      sh: 'portcullis rollout unpin cap/guard',
      prints: [/guard unpinned from revision 2$/m],
    },
    {
      by: 'reader',
      shows: 'sees the declared one serve',
      sh: 'portcullis rollout status cap/guard',
      prints: [/guard: Active: revision 4 serves on 2 of 2 replicas$/m],
      probes: guard(/rule four/),
    },
    {
      by: 'admin',
      shows: 'ends the enforcement in an emergency',
      sh: "portcullis break-glass disarm cap/guard --reason 'incident 7'",
      prints: [/guard disarmed$/m],
    },
    {
      by: 'reader',
      shows: 'sees that requests are admitted, why, and what ends it',
      sh: `kubectl get cap guard; portcullis break-glass status; portcullis rollout status cap/guard --watch=false
        portcullis doctor`,
      code: 1,
      prints: [
        /^guard +protect +Error +False +4 +0 +0 +(?:\S+ +)?Disarmed /m,
        /guard: incident 7$/m,
        /^Arm it again: portcullis break-glass rearm clusteradmissionpolicy\/guard$/m,
        /^error Disarmed: clusteradmissionpolicy\/guard$/m,
      ],
      probes: guard(/^201$/),
    },
    {
      by: 'admin',
      shows:
        'arms it again, in monitor mode for another resource, and with a mistake in the rules of a policy of the tenant',
      sh: `portcullis break-glass rearm cap/guard
        ${applyPolicy('watched', 'services', { ...rejects('not here'), mode: 'monitor' })}
        ${applyObject({
          apiVersion: 'policies.kubewarden.io/v1',
          kind: 'AdmissionPolicy',
          metadata: { name: 'own', namespace: 'shop' },
          spec: {
            ...rejects('own rule'),
            mutating: false,
            rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['endpoint'], operations: ['CREATE'] }],
          },
        })}
        portcullis wait cap/watched --for=condition=Ready && kubectl create service clusterip seen --tcp=80 -n shop`,
      prints: [/guard armed again$/m, /Did you mean endpoints\?/, /service\/seen created/],
    },
    {
      by: 'reader',
      shows: 'sees what the policy in monitor mode would have rejected',
      sh: 'kubectl get cap guard watched; portcullis rollout status cap/watched',
      prints: [
        /^guard +protect +Active +True +4 +4 +2 /m,
        /^watched +monitor +Active +True +1 +1 +2 /m,
        /would have rejected 1 request since \S+; the last: CREATE Service shop\/seen by admin: not here$/m,
      ],
      probes: [...guard(/rule four/), creation('services', /^201$/)],
    },
    {
      by: 'tenant',
      shows:
        'sees the policy of the namespace, that it cannot match, and its revisions without the right to read these',
      sh: `kubectl get admpol; portcullis rollout history ap/own; portcullis rollout status ap/own --watch=false
        kubectl wait admpol/own --for=condition=Ready --timeout=0`,
      code: 1,
      prints: [
        /^own +protect +Active +True +1 +1 +2 +(?:\S+ +)?CannotMatch /m,
        /^note: you may not read PolicyRevisions in namespace portcullis: this is what the status of the policy says/m,
        /^1 +Serving +\S+ +generation 1 +builtin:cel@\S+$/m,
        /but CannotMatch: spec\.rules\[0\]\.resources\[0\]: .*Did you mean endpoints\?/,
      ],
    },
    {
      by: 'tenant',
      shows: 'is told which rights are missing, and what is shown without them',
      sh: `portcullis get; portcullis get ap -A; portcullis events --for ap/own; portcullis break-glass status
        portcullis rollout undo ap/own; portcullis doctor`,
      code: 1,
      prints: [
        /^note: left out, because you may not list them: clusteradmissionpolicies\.\S+, .*, policyservers\.\S+$/m,
        /^admissionpolicy\.policies\.kubewarden\.io\/own +protect +Active /m,
        /^Without -A, it shows those of one namespace: -n NAMESPACE names one that you may read\.$/m,
        /cannot list resource "events".*\n.* portcullis describe ap\/own$/m,
        /^note: not looked at, because you may not list them: policyservers, clusteradmissionpolicies, /m,
        /User "tenant" cannot patch resource "admissionpolicies"/,
        /^error PolicyCannotWork: admissionpolicy\/own -n shop$/m,
        /^warning NotLookedAt: .*secrets.*\n +you may not list these objects, so their problems are not found$/m,
        /only those were looked at that are in namespace shop$/m,
      ],
      omits: /PolicyServerMissing|No problems found|at \S+\.ts:\d+/,
    },
    {
      by: 'admin',
      shows: 'reads the same in events',
      sh: 'portcullis events --for cap/guard; kubectl delete admpol own -n shop; kubectl delete cap watched',
      prints: [/Warning +Disarmed +ClusterAdmissionPolicy\/guard +disarmed by admin: incident 7$/m, /own" deleted/],
    },
  ],
};
