"""Every name of this package, and where it is read from: see ``reticent.kernel.lazy``."""

from reticent.attacks.base import ATTACKS as ATTACKS
from reticent.attacks.base import Attack as Attack
from reticent.attacks.base import AttackSettings as AttackSettings
from reticent.attacks.base import find_attack as find_attack
from reticent.attacks.canaries import CanaryAudit as CanaryAudit
from reticent.attacks.loop import audit_loop as audit_loop
from reticent.attacks.mechanics import MechanicsReport as MechanicsReport
from reticent.attacks.mechanics import audit_mechanics as audit_mechanics
from reticent.attacks.own_trainer import OwnTrainer as OwnTrainer
from reticent.attacks.participation import Check as Check
from reticent.attacks.shadow import ShadowModels as ShadowModels
from reticent.attacks.shadow import ShadowPlan as ShadowPlan
from reticent.attacks.shadow import train_shadow_models as train_shadow_models
from reticent.attacks.shadow_scores import lira_offline as lira_offline
from reticent.attacks.shadow_scores import lira_online as lira_online
from reticent.attacks.shadow_scores import rmia as rmia
from reticent.attacks.white_box import Probe as Probe
from reticent.attacks.white_box import TrainFunction as TrainFunction

# isort: off
# kinds: in the order in which people see them
from reticent.attacks.black_box import LossAttack as LossAttack
from reticent.attacks.black_box import ConfidenceAttack as ConfidenceAttack
from reticent.attacks.black_box import LiraOnline as LiraOnline
from reticent.attacks.black_box import LiraOffline as LiraOffline
from reticent.attacks.black_box import Rmia as Rmia
from reticent.attacks.black_box import RmiaOffline as RmiaOffline
from reticent.attacks.gradient import CanaryAttack as CanaryAttack
from reticent.attacks.gradient import GlirAttack as GlirAttack
