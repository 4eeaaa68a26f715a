export { ControlCertificates } from './control-certificates.ts';
export { ControlCaller } from './control-caller.ts';
export { reportOf, TestReports } from './test-reports.ts';
