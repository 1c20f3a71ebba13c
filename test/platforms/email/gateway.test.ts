import { gatewayOf } from '../gateway-suite.ts';
import { subject } from './subject.ts';

gatewayOf(subject);
