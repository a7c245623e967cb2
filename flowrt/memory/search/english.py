"""What English needs beside endings: words without content, and forms that no rule makes."""

from __future__ import annotations

_STOP = """
a about above after again against all also am an and any are aren as at be because been before
being below between both but by can cannot could couldn d did didn do does doesn doing don down
during each else ever few for from further had hadn has hasn have haven having he her here hers
herself him himself his how i if in into is isn it its itself just kind let likely ll m many maybe
me might more most much must my myself no nor not now o of off on once only or other our ours
ourselves out over own re really s same shall she should shouldn so some still such t than that the
their theirs them themselves then there these they this those though through to too type under
until up us ve very was wasn we were weren what when where which while who whom whose why will with
won would wouldn y yes yet you your yours yourself yourselves
"""

STOP = frozenset(_STOP.split())
"""Words that say how something is asked. Single letters are what an apostrophe leaves behind."""

_FORMS = """
arise arose arisen
awake awoke awoken
beat beaten
become became becoming
begin began begun beginning
bend bent
bet betting
bind bound
bite bit bitten biting
bleed bled
blow blew blown
break broke broken
breed bred
bring brought
build built
burn burnt
buy bought
catch caught
choose chose chosen choosing
cling clung
come came coming
creep crept
cut cutting
deal dealt
die died dying dies
dig dug digging
draw drew drawn
dream dreamt
drink drank drunk
drive drove driven driving
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
find found
flee fled
fly flew flown flies
forbid forbade forbidden
forget forgot forgotten forgetting
forgive forgave forgiven forgiving
freeze froze frozen freezing
get got gotten getting
give gave given giving
go went gone goes going
grind ground
grow grew grown
hang hung
hear heard
hide hid hidden hiding
hit hitting
hold held
keep kept
kneel knelt
know knew known
lay laid
lead led
lean leant
leap leapt
learn learnt
leave left leaving
lend lent
lie lied lying lies
light lit
lose lost losing
make made making
mean meant
meet met
pay paid
prove proven
put putting
quit quitting
read reading
ride rode ridden riding
ring rang rung
rise rose risen rising
run ran running
say said says
see saw seen seeing
seek sought
sell sold
send sent
set setting
sew sewn
shake shook shaken
shine shone
shoot shot
show shown showed
shrink shrank shrunk
sing sang sung
sink sank sunk
sit sat sitting
sleep slept
slide slid
speak spoke spoken
speed sped
spend spent
spill spilt
spin spun spinning
split splitting
spread spreading
spring sprang sprung
stand stood
steal stole stolen
stick stuck
sting stung
strike struck stricken
strive strove striven
swear swore sworn
sweep swept
swim swam swum swimming
swing swung
take took taken taking
teach taught
tear tore torn
tell told
think thought
throw threw thrown
tie tied tying ties
understand understood
use used using uses
wake woke woken
wear wore worn
weave wove woven
weep wept
win won winning
wind wound
withdraw withdrew withdrawn
write wrote written writing
child children kids kid
man men
woman women
person people persons
foot feet
tooth teeth
mouse mice
goose geese
life lives
wife wives
knife knives
leaf leaves
shelf shelves
half halves
wolf wolves
good better best
bad worse worst
far farther further furthest farthest
mother mom mum mommy mummy moms
father dad daddy dads
grandmother grandma granny
grandfather grandpa
photo photograph photos photographs picture pictures pic pics photography
television tv
movie film movies films
"""

FORMS = {form: line.split()[0] for line in _FORMS.strip().splitlines() for form in line.split()}
"""The first form of each word of `_FORMS`."""
